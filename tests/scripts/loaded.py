"""Loads the programs in scripts/ as modules."""

import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(CHECKOUT / "scripts"))


def load(program):
    loader = SourceFileLoader(program.replace("-", "_"), str(CHECKOUT / "scripts" / program))
    module = module_from_spec(spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module
