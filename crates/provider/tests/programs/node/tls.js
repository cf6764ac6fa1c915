// Data both ways over TLS.
//
// usage: tls.js server CERTIFICATE KEY PORT    an echo, until it is told to end
//        tls.js client CERTIFICATE PORT FILE   sends the file, and compares what comes back
'use strict';
const fs = require('fs');
const tls = require('tls');

const [role, certificate, ...rest] = process.argv.slice(2);
if (role === 'server') {
    const [key, port] = rest;
    const options = { cert: fs.readFileSync(certificate), key: fs.readFileSync(key) };
    // A caller that only looks whether somebody listens speaks no TLS.
    const server = tls.createServer(options, (socket) => socket.pipe(socket));
    server.on('tlsClientError', () => {});
    server.listen(Number(port), '127.0.0.1');
    process.on('SIGTERM', () => process.exit(0));
} else {
    const [port, file] = rest;
    const sent = fs.readFileSync(file);
    const got = [];
    const options = { host: '127.0.0.1', port: Number(port), servername: 'localhost' };
    const socket = tls.connect({ ...options, ca: fs.readFileSync(certificate) }, () => socket.end(sent));
    socket.on('data', (piece) => got.push(piece));
    socket.on('end', () => process.exit(Buffer.concat(got).equals(sent) ? 0 : 1));
}
