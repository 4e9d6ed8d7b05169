# shellcheck shell=sh
# The part that all maintainer scripts share; DPKG_ROOT is empty except in an installation from outside.
hooks=${DPKG_ROOT:-}/etc/libvirt/hooks
link=$hooks/qemu.d/vfpass
state=${DPKG_ROOT:-}/var/lib/vfpass
leases=$state/leases-at-removal
removed_hook=${DPKG_ROOT:-}/usr/share/vfpass/removed-hook

# The hook of the installed package: the link that `vfpass hook install` makes.
is_our_link() {
    [ -h "$link" ] || return 1
    case $(readlink "$link") in */vfpass-qemu-hook) return 0 ;; esac
    return 1
}

# The one that remains after removal.
is_removed_hook() { [ -f "$link" ] && [ ! -h "$link" ] && grep -q 'package vfpass was removed' "$link"; }

# libvirt may call a hook at any time, so each one is replaced in one step, by a file that was complete before. Drafts are
# outside qemu.d, whose programs libvirt runs.
replace_hook() {
    mv -T "$1" "$link"
}

keep_removed_hook() {
    is_our_link || return 0
    cp "$removed_hook" "$hooks/.vfpass-removed"
    chmod 755 "$hooks/.vfpass-removed"
    replace_hook "$hooks/.vfpass-removed"
}

restore_hook() {
    is_removed_hook || return 0
    ln -sfn /usr/sbin/vfpass-qemu-hook "$hooks/.vfpass-link"
    replace_hook "$hooks/.vfpass-link"
}

# VMs, running or not, whose XML has our metadata or devices: libvirt's files have the domain's name.
managed_vms() {
    for file in "${DPKG_ROOT:-}"/etc/libvirt/qemu/*.xml "${DPKG_ROOT:-}"/run/libvirt/qemu/*.xml; do
        if [ -f "$file" ] && grep -q -e 'https://vfpass.org/xmlns/domain/1' -e 'ua-vfpass-' "$file"; then
            basename "$file" .xml
        fi
    done | sort -u
}

# Records the leases for a later purge, which has no vfpass to ask.
record_leases() {
    [ -d "$state" ] || return 0
    "${DPKG_ROOT:-}/usr/sbin/vfpass" --state-dir "$state" hook remove --dry-run >/dev/null 2>"$leases.new" && result=0 || result=$?
    if [ "$result" = 5 ]; then
        mv "$leases.new" "$leases"
    else
        rm -f "$leases.new" "$leases"
    fi
}

show_vms() {
    managed_vms | sed 's/^/        /'
    [ ! -s "$leases" ] || cat "$leases"
}

# Nothing updates the file of vfpass-metrics.timer any more, and node_exporter would show it for ever.
remove_metrics() {
    rm -f "${DPKG_ROOT:-}/var/lib/prometheus/node-exporter/vfpass.prom"
}

# The administrator's link to the rule of docs/network-managers.md, whose target the package has removed.
remove_rule_link() {
    rule=${DPKG_ROOT:-}/etc/udev/rules.d/95-vfpass-vf.rules
    case $(readlink "$rule") in */vfpass/network/95-vfpass-vf.rules) rm -f "$rule" ;; esac
}

have_vms() { [ -n "$(managed_vms)" ] || [ -s "$leases" ]; }
