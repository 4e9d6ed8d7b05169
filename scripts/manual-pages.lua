-- Used by scripts/manual-pages: code within a sentence is bold, as is usual in manual pages.
function Code(code)
  return pandoc.Strong(pandoc.Str(code.text))
end
