/**
 * The baseline of live Queries: a bare WebSocket server on the same runtime that sends one text to
 * all its clients for each POST. Prints its port.
 */
const text = process.env.PAYLOAD ?? ''
const TOPIC = 'all'
const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  fetch(request, server) {
    if (server.upgrade(request)) return undefined
    server.publish(TOPIC, text)
    return new Response('{}')
  },
  websocket: {
    perMessageDeflate: false,
    open: (socket) => void socket.subscribe(TOPIC),
    message: () => undefined,
  },
})
process.stdout.write(`${server.port}\n`)
