"""The stages below src: their directories, their sources, and what they link."""

import re

LINKED = re.compile(r"\bvfpass_([a-z_]+)\b")
CALLS = re.compile(r"\b(?:vfpass_stage|vfpass_unit_tests|target_link_libraries)\s*\(([^)]*)\)", re.DOTALL)


def folders_of(sources):
    """The directories of the stages. One may be in that of another stage."""
    return sorted(file.parent for file in sources.rglob("CMakeLists.txt"))


def linked_stages(folder):
    """The stages that the calls in FOLDER's CMakeLists.txt name, each with its library's name."""
    text = re.sub(r"#.*", "", (folder / "CMakeLists.txt").read_text(encoding="utf-8"))
    return {name for call in CALLS.findall(text) for name in LINKED.findall(call)}


def own_files(stage):
    """The sources and headers of this stage, without those of stages below its directory."""
    inner = [file.parent for file in stage.rglob("CMakeLists.txt") if file.parent != stage]
    return sorted(file for suffix in ("cpp", "hpp") for file in stage.rglob(f"*.{suffix}")
                  if not any(file.is_relative_to(folder) for folder in inner))
