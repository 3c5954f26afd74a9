/** A receiver of OTLP/HTTP that discards what it gets. Prints its port. */
const receiver = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  async fetch(request) {
    await request.arrayBuffer()
    return new Response(null, { headers: { 'content-type': 'application/x-protobuf' } })
  },
})
process.stdout.write(`${receiver.port}\n`)
