# Reads domain XML in libvirt's format and prints "HOST_ADDRESS GUEST_ADDRESS" for each PCI
# hostdev and each <interface type='hostdev'>.
#
# libvirt's bus is the index of a controller. The guest's firmware numbers the buses depth first,
# in the order of the bridges' addresses; this script does the same.

function value(name,    parts) {
    if (!match($0, " " name "='[^']*'")) return ""
    split(substr($0, RSTART, RLENGTH), parts, "'")
    return parts[2]
}

function number(hex,    i, result) {
    sub(/^0x/, "", hex)
    for (i = 1; i <= length(hex); i++)
        result = result * 16 + index("0123456789abcdef", tolower(substr(hex, i, 1))) - 1
    return result + 0
}

function address(bus) {
    return sprintf("%04x:%02x:%02x.%x", number(value("domain")), bus,
                   number(value("slot")), number(value("function")))
}

# number_buses(BUS): numbers the bridges on libvirt's BUS, lowest address first.
function number_buses(bus,    place, i) {
    for (place = 0; place < 256; place++) {
        i = bridge[bus, place]
        if (i == "") continue
        guest_bus[i] = ++last_bus
        number_buses(i)
    }
}

/<controller type='pci'/ { controller = value("index"); inside = "controller" }
/<hostdev / && value("type") == "pci" { inside = "hostdev" }
/<interface / && value("type") == "hostdev" { inside = "hostdev" }
/<source/ && inside == "hostdev" { source = 1 }
/<address / && source { host = address(number(value("bus"))) }
/<address / && !source && inside == "hostdev" {
    hosts[++count] = host
    bus[count] = number(value("bus"))
    rest[count] = substr(address(0), 9)
}
/<address / && inside == "controller" {
    bridge[number(value("bus")), number(value("slot")) * 8 + number(value("function"))] = controller
}
/<\/source>/ { source = 0 }
/<\/(hostdev|interface|controller)>/ || /<controller .*\/>/ { inside = "" }

END {
    number_buses(0)
    for (i = 1; i <= count; i++)
        printf "%s 0000:%02x:%s\n", hosts[i], bus[i] == 0 ? 0 : guest_bus[bus[i]], rest[i]
}
