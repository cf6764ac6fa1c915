# The far end of a tunnel: Linux's own IPsec, in a guest of scripts/guest.
set -e
ip link set lo up
ip addr add 203.0.113.1/24 dev eth0
ip addr add 2001:db8:c::1/64 dev eth0 nodad
ip link set eth0 up
ip route add default via 203.0.113.254
ip route add default via 2001:db8:c::ff
exec perl /far-end.pl
