/**
 * The program of an application under a JavaScript runtime. It is started as a process, uses the
 * package `svc` as it is installed, and reads commands from its standard input, one JSON per line.
 */

/** Imports `svc/client` and `./api.ts`, both beside it, and the package `ws` where it is needed. */
export const PROGRAM = `
import { createInterface } from 'node:readline'
import { createClient, memoryStore, isCallError } from 'svc/client'
import { api } from './api.js'

const [url, applicationKey, channel] = process.argv.slice(2)
const print = (record) => process.stdout.write(JSON.stringify(record, (_, value) =>
  typeof value === 'bigint' ? value + 'n' : value) + '\\n')
const client = createClient({
  url, applicationKey, target: 'channel:production', store: memoryStore(), deadlineMillis: 5_000,
})
client.connection.subscribe(() => {
  const { status, pendingMutations } = client.connection.current()
  print({ status, pendingMutations })
})
const show = (messages) => print({ bodies: messages.map(({ body }) => body).reverse() })
const fail = (error) => print({ failed: error.code })
client.watch(api.messages.list, { channel, limit: 200n }, show, fail)
const failure = (error) => print({ error: isCallError(error) ? error.code : String(error) })
const commands = {
  send: ({ body }) => client
    .mutation(api.messages.send, { channel, author: 'program', body }, {
      optimistic: (local) => {
        const key = { channel, limit: 200n }
        const before = local.get(api.messages.list, key)
        if (before !== undefined) {
          local.set(api.messages.list, key, [{ body: body + ' (sending)' }, ...before])
        }
      },
    })
    .then((id) => print({ sent: id }), failure),
  wrong: () => client.mutation(api.messages.send, { channel: 'users_1', author: 'a', body: 'b' })
    .then(() => print({ sent: null }), failure),
  declared: () => client.mutation(api.messages.send, {
    channel: channel.slice(0, -1) + (channel.endsWith('0') ? '1' : '0'), author: 'a', body: 'b',
  }).then(() => print({ sent: null }), failure),
  query: () => client.query(api.channels.list)
    .then((channels) => print({
      names: channels.map(({ name }) => name), created: typeof channels[0]._createdAt,
    }), failure),
  reconnect: () => client.reconnectNow(),
  close: () => { client.close(); process.exit(0) },
}
for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line)
  commands[command.do](command)
}
`
