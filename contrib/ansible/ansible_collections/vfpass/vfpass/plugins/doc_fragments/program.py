from __future__ import absolute_import, division, print_function

__metaclass__ = type


class ModuleDocFragment(object):
    DOCUMENTATION = r"""
options:
  program:
    description: The vfpass program on the host, by name or path.
    type: str
    default: vfpass
  config_dir:
    description: Directory of mappings and host.yaml.
    type: path
    default: /etc/vfpass
  state_dir:
    description: Directory of leases and journal. Default of the program if not set.
    type: path
  run_dir:
    description: Directory of locks. Default of the program if not set.
    type: path
  connect:
    description: URI of libvirt. Default of the program if not set.
    type: str
  sysroot:
    description: A captured tree (C(vfpass snapshot)) to read instead of the host. Only for check mode, or without applying.
    type: path
"""
