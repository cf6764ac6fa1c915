# OpenVPN between two network namespaces, and a stream of TCP through it. It runs in a network
# namespace of its own, as root; its directory has the provider 'engine', which the left end uses.
# It says 'ready PID' with the number of the left end's process; a line of input begins the stream;
# it says 'done BYTES'. Both ends are ended with it.
set -eu
cd "$1"
started=
trap 'for one in $started; do kill "$one" 2>/dev/null || true; done' EXIT

# It tells that it is in its namespace before the cable is laid to it.
unshare --net sh -c 'echo >far; exec sleep 600' &
far=$!
started=$far
until [ -e far ]; do sleep 0.05; done
there() { nsenter --net --target "$far" "$@"; }

ip link add cable type veth peer name cable netns "$far"
ip address add 198.18.0.1/24 dev cable
there ip address add 198.18.0.2/24 dev cable
ip link set cable up
there ip link set cable up

openvpn --genkey secret key
# A key that both know: the tunnel's cipher alone is what is tried.
ends="--secret key --cipher AES-128-CBC --auth SHA256 --dev-type tun --dev tunnel"
LD_LIBRARY_PATH= nsenter --net --target "$far" openvpn $ends --local 198.18.0.2 \
    --remote 198.18.0.1 --ifconfig 198.18.1.2 198.18.1.1 >far.log 2>&1 &
started="$started $!"
OPENSSL_MODULES=$1 OPENSSL_CONF=/dev/null openvpn $ends --providers engine default \
    --local 198.18.0.1 --remote 198.18.0.2 --ifconfig 198.18.1.1 198.18.1.2 >near.log 2>&1 &
near=$!
started="$started $near"
tries=0
until ping -c 1 -W 1 198.18.1.2 >/dev/null 2>&1; do
    tries=$((tries + 1))
    [ $tries -lt 30 ] || { cat near.log far.log; exit 1; }
    sleep 0.2
done
# Not by the function: a shell of its own would be what is ended.
nsenter --net --target "$far" iperf3 -s -B 198.18.1.2 >/dev/null 2>&1 &
started="$started $!"
sleep 0.5
echo "ready $near"
read -r _
iperf3 -c 198.18.1.2 -t 4 -J >sent
sed -n '/sum_received/,/}/s/.*"bytes":[^0-9]*\([0-9]*\).*/done \1/p' sent
read -r _ || true
