# What runs in a guest beside Linux's IPsec, so that a test can work with it from outside. It uses
# no module, so that the program perl alone is enough.
#
#   UDP 4500   ESP in UDP goes to the kernel's IPsec (UDP_ENCAP), IPv4 and IPv6; where the guest has
#              a charon, which is configured by /strongswan.conf, that is charon's work
#   TCP 23     a shell script, to its end; the answer is what it prints
#   TCP 7      echo
#
# It ends with SIGTERM. With the octets of addresses, as hexadecimal digits, it is an echo of
# UDP 7 at each of them instead: one socket for all would answer from any of them.

my ($INET, $INET6, $STREAM, $DGRAM, $UDP, $IPV6) = (2, 10, 1, 2, 17, 41);
my ($SOL_SOCKET, $REUSEADDR, $V6ONLY, $UDP_ENCAP, $ESPINUDP) = (1, 2, 26, 100, 2);

sub bound {
    my ($family, $kind, $port, $octets) = @_;
    socket(my $socket, $family, $kind, 0) or die "socket: $!";
    setsockopt($socket, $SOL_SOCKET, $REUSEADDR, pack("i", 1)) or die "SO_REUSEADDR: $!";
    # A socket of IPv6 takes both families, but for ESP in UDP each has its own.
    my $only = $port == 4500 ? 1 : 0;
    $family != $INET6
        or setsockopt($socket, $IPV6, $V6ONLY, pack("i", $only)) or die "IPV6_V6ONLY: $!";
    my $address = $family == $INET
        ? pack("S n a4 x8", $INET, $port, $octets // "")
        : pack("S n N a16 N", $INET6, $port, 0, $octets // "", 0);
    bind($socket, $address) or die "bind $port: $!";
    $kind != $STREAM or listen($socket, 16) or die "listen $port: $!";
    return $socket;
}

# Calls what is given with each connection, in a process of its own.
sub serve {
    my ($socket, $work) = @_;
    return if fork;
    while (accept(my $connection, $socket)) {
        if (!fork) {
            $work->($connection);
            exit 0;
        }
        close $connection;
    }
    die "accept: $!";
}

sub echo {
    my ($connection) = @_;
    while (sysread($connection, my $bytes, 65536)) {
        my $done = 0;
        while ($done < length $bytes) {
            $done += syswrite($connection, $bytes, length($bytes) - $done, $done) // exit 1;
        }
    }
}

sub shell {
    my ($connection) = @_;
    open(STDIN, "<&", $connection) && open(STDOUT, ">&", $connection)
        && open(STDERR, ">&", $connection) or die "dup: $!";
    exec "sh";
}

$SIG{CHLD} = "IGNORE";
for my $octets (map { pack "H*", $_ } @ARGV) {
    next if fork;
    my $socket = bound(length $octets == 4 ? $INET : $INET6, $DGRAM, 7, $octets);
    while (defined(my $from = recv($socket, my $bytes, 65536, 0))) {
        send($socket, $bytes, 0, $from);
    }
    die "recv: $!";
}
exit 0 if @ARGV;

my @encapsulated;
for my $family (-e "/strongswan.conf" ? () : ($INET, $INET6)) {
    my $socket = bound($family, $DGRAM, 4500);
    setsockopt($socket, $UDP, $UDP_ENCAP, pack("i", $ESPINUDP)) or die "UDP_ENCAP: $!";
    push @encapsulated, $socket;
}
serve(bound($INET6, $STREAM, 7), \&echo);
serve(bound($INET6, $STREAM, 23), \&shell);
$SIG{TERM} = sub { exit 0 };
open(my $file, ">", "/tmp/far-end.pid") or die;
print $file "$$\n";
close $file;
sleep 1 while 1;
