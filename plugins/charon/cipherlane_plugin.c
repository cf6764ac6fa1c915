/* SPDX-License-Identifier: MIT OR Apache-2.0 */

/*
 * kernel-cipherlane: a plugin for strongSwan's charon, by which 'cipherlane gateway' is its IPsec
 * and has its sockets. It takes the places of the plugins socket-default and kernel-libipsec;
 * kernel-netlink stays for addresses and routes, and must be loaded after it.
 */
#include "cipherlane_ipsec.h"
#include "cipherlane_socket.h"

#include <daemon.h>
#include <plugins/plugin.h>

METHOD(plugin_t, get_name, char*, plugin_t *this)
{
	return "kernel-cipherlane";
}

METHOD(plugin_t, get_features, int, plugin_t *this, plugin_feature_t *features[])
{
	static plugin_feature_t f[] = {
		PLUGIN_CALLBACK(kernel_ipsec_register, cipherlane_ipsec_create),
			PLUGIN_PROVIDE(CUSTOM, "kernel-ipsec"),
		PLUGIN_CALLBACK(socket_register, cipherlane_socket_create),
			PLUGIN_PROVIDE(CUSTOM, "socket"),
				PLUGIN_SDEPEND(CUSTOM, "kernel-ipsec"),
	};
	*features = f;
	return countof(f);
}

METHOD(plugin_t, destroy, void, plugin_t *this)
{
	free(this);
}

/* The name that the plugin loader looks for. */
__attribute__((visibility("default")))
plugin_t *kernel_cipherlane_plugin_create()
{
	plugin_t *this;

	INIT(this,
		.get_name = _get_name,
		.get_features = _get_features,
		.destroy = _destroy,
	);
	return this;
}
