/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ACCESS_REG: registers of the port (port.c). The numbers are those of enum mlx5_reg in include/linux/mlx5/driver.h. */
#include "connectx.h"

enum {
    REGISTER_QPTS = 0x4002, REGISTER_QETCR = 0x4005,
    REGISTER_PCAP = 0x5001, REGISTER_PMAOS = 0x5012, REGISTER_PMTU = 0x5003, REGISTER_PTYS = 0x5004, REGISTER_PAOS = 0x5006,
    REGISTER_PFCC = 0x5007, REGISTER_PPCNT = 0x5008, REGISTER_PBMC = 0x500c, REGISTER_PPTB = 0x500b, REGISTER_PVLC = 0x500f,
    REGISTER_PMLP = 0x5002, REGISTER_PCMR = 0x5041, REGISTER_PPLM = 0x5023, REGISTER_NODE_DESCRIPTION = 0x6001,
    REGISTER_HOST_ENDIANNESS = 0x7004,
};

enum { PROTOCOL_ETHERNET = 4, CONNECTOR_COPPER = 4, MODE_WRITE = 0 };

static void speeds(Port *port, const uint8_t *in, uint8_t *out)
{
    if (GET(in, ptys_reg__proto_mask) == PROTOCOL_ETHERNET) {
        SET(out, ptys_reg__eth_proto_capability, port->card->ethernet_speeds);
        SET(out, ptys_reg__eth_proto_admin, port->card->ethernet_speeds);
        SET(out, ptys_reg__eth_proto_oper, uplink_is_up(port) ? port->card->best_speed : 0);
    } else { /* all widths and speeds up to EDR; four lanes of EDR are in use */
        SET(out, ptys_reg__ib_link_width_capability, 0xf);
        SET(out, ptys_reg__ib_proto_capability, 0x3f);
        SET(out, ptys_reg__ib_link_width_admin, 0xf);
        SET(out, ptys_reg__ib_proto_admin, 0x3f);
        SET(out, ptys_reg__ib_link_width_oper, 2);
        SET(out, ptys_reg__ib_proto_oper, 0x20);
    }
    SET(out, ptys_reg__connector_type, CONNECTOR_COPPER);
}

static void admin_state(Function *function, const uint8_t *in, uint8_t *out, bool write)
{
    Port *port = function->port;
    uint8_t wanted = GET(in, paos_reg__admin_status);

    if (write && function->vport == 0 && wanted != port->admin_state) {
        port->admin_state = wanted;
        port_link_changed(port);
    }
    SET(out, paos_reg__admin_status, port->admin_state);
    SET(out, paos_reg__oper_status, uplink_is_up(port) ? 1 : 2);
}

/* InfiniBand knows 256 to 4096 only: any other value reads as an MTU of 4294967291 (mlx5_query_port_max_mtu). */
static void mtu(Port *port, uint8_t *out)
{
    uint16_t value = port->infiniband ? 4096 : 9978;

    SET(out, pmtu_reg__max_mtu, value);
    SET(out, pmtu_reg__admin_mtu, value);
    SET(out, pmtu_reg__oper_mtu, value);
}

/* Four virtual lanes. */
static void virtual_lanes(uint8_t *out, uint32_t length)
{
    memset(out, 0, length);
    SET(out, pvlc_reg__vl_hw_cap, 4);
    SET(out, pvlc_reg__vl_admin, 4);
    SET(out, pvlc_reg__vl_operational, 4);
}

/* Which priorities are paused. It reads back and pauses nothing. */
static void flow_control(Port *port, const uint8_t *in, uint8_t *out, bool write)
{
    if (write) {
        memcpy(port->flow_control, in, sizeof(port->flow_control));
    }
    memcpy(out, port->flow_control, sizeof(port->flow_control));
}

static uint8_t access_register(Function *function, Command *command)
{
    uint8_t *in = AT(command->in, access_register_in__register_data);
    uint8_t *out = AT(command->out, access_register_out__register_data);
    uint32_t header = OFF_access_register_in__register_data / 8, length = MIN(command->in_length, command->out_length);

    if (length <= header) {
        return STATUS_BAD_INPUT_LENGTH;
    }
    memcpy(out, in, length - header); /* what is not modelled reads as it was written */
    switch (GET(command->in, access_register_in__register_id)) {
    case REGISTER_PTYS:
        speeds(function->port, in, out);
        return STATUS_OK;
    case REGISTER_PAOS:
        admin_state(function, in, out, command->modifier == MODE_WRITE);
        return STATUS_OK;
    case REGISTER_PMTU:
        mtu(function->port, out);
        return STATUS_OK;
    case REGISTER_PVLC:
        virtual_lanes(out, length - header);
        return STATUS_OK;
    case REGISTER_PFCC:
        if (length - header < sizeof(function->port->flow_control)) {
            return STATUS_BAD_INPUT_LENGTH;
        }
        flow_control(function->port, in, out, command->modifier == MODE_WRITE);
        return STATUS_OK;
    case REGISTER_PCAP: case REGISTER_PMLP: case REGISTER_PPCNT: case REGISTER_PPTB: case REGISTER_PPLM:
    case REGISTER_QETCR: case REGISTER_NODE_DESCRIPTION: case REGISTER_HOST_ENDIANNESS:
        return STATUS_OK;
    default:
        return STATUS_BAD_PARAMETER;
    }
}

const CommandEntry access_register_commands[] = {
    { OP_ACCESS_REG, access_register },
    { 0, NULL },
};
