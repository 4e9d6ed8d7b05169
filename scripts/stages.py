"""The stages below src: their directories, their sources, and what they link."""

import re

LINKED = re.compile(r"\bvfpass_([a-z_]+)\b")
CALLS = re.compile(r"\b(?:vfpass_stage|vfpass_unit_tests|target_link_libraries)\s*\(([^)]*)\)", re.DOTALL)
# A stage that src/CMakeLists.txt declares: its directory, and what follows.
DECLARED = re.compile(r"\bvfpass_stage\s*\(\w+\s+IN\s+(\S+)([^)]*)\)", re.DOTALL)


def text_of(file):
    """The text of a CMakeLists.txt without its comments; empty if the file does not exist."""
    return re.sub(r"#.*", "", file.read_text(encoding="utf-8")) if file.exists() else ""


def declared_in(sources):
    """The directories of the stages that SOURCES/CMakeLists.txt declares, each with the rest of its declaration."""
    return {sources / folder: rest for folder, rest in DECLARED.findall(text_of(sources / "CMakeLists.txt"))}


def folders_of(sources):
    """The directories of the stages. One may be in that of another stage."""
    own = {file.parent for file in sources.rglob("CMakeLists.txt")} - {sources}
    return sorted(own | declared_in(sources).keys())


def sources_of(folder):
    """The directory `src` that FOLDER is in."""
    return next((parent for parent in folder.parents if parent.name == "src"), folder)


def linked_stages(folder):
    """The stages that the calls in FOLDER's CMakeLists.txt name, or its declaration, each with its library's name."""
    calls = [*CALLS.findall(text_of(folder / "CMakeLists.txt")), declared_in(sources_of(folder)).get(folder, "")]
    return {name for call in calls for name in LINKED.findall(call)}


def own_files(stage):
    """The sources and headers of this stage, without those of stages below its directory."""
    inner = [folder for folder in folders_of(sources_of(stage)) if stage in folder.parents]
    return sorted(file for suffix in ("cpp", "hpp") for file in stage.rglob(f"*.{suffix}")
                  if not any(file.is_relative_to(folder) for folder in inner))
