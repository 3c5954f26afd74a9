/**
 * The program of an application under a JavaScript runtime. It is started as a process, uses the
 * package `svc` as it is installed, and reads commands from its standard input, one JSON per line.
 */

/** Imports `svc/client` and `./api.ts`, both beside it, and the package `ws` where it is needed. */
export const PROGRAM = `
import { createInterface } from 'node:readline'
import { createClient, memoryStore, isCallError } from 'svc/client'
import { api } from './api.js'

const [url, applicationKey, channel, tokens] = process.argv.slice(2)
const print = (record) => process.stdout.write(JSON.stringify(record, (_, value) =>
  typeof value === 'bigint' ? value + 'n' : value) + '\\n')
const token = async ({ refresh }) => (await fetch(tokens + (refresh ? '?refresh' : ''))).text()
const client = createClient({
  url, applicationKey, target: 'channel:production', store: memoryStore(), deadlineMillis: 5_000,
  ...(tokens && { token }),
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
  me: () => client.watch(api.lab.me, {},
    ({ subject, channels }) => print({ subject, channels }), fail),
  querySubject: () => client.query(api.lab.me).then(({ subject }) => print({ subject }), failure),
  page: () => {
    const paged = client.paginate(api.lab.page, { channel }, { pageSize: 3 })
    const show = () => {
      const { status, items } = paged.current()
      print({ page: status, items: items.map(({ body }) => body) })
    }
    paged.subscribe(show)
    commands.more = () => paged.loadMore()
  },
  file: async ({ text }) => {
    const bytes = new TextEncoder().encode(text)
    const textOf = ({ bytes }) => new TextDecoder().decode(bytes)
    const contentType = 'text/plain'
    try {
      const grant = await client.action(api.lab.grantUpload, { maximumBytes: 1_000n })
      const file = await client.upload(grant, new Blob([bytes]), { contentType })
      const { fileId, size, sha256 } = file
      const down = await client.action(api.lab.grantDownload, { file: fileId })
      const whole = await client.download(down)
      const part = await client.download(down, { range: { start: 1, end: 3 } })
      const same = whole.sha256 === sha256 && part.sha256 === sha256 && whole.fileId === fileId
      print({ whole: textOf(whole), part: textOf(part), same, type: whole.contentType,
        sizes: [size, whole.size, part.size] })
      const shown = await fetch(client.downloadUrl(await client.action(api.lab.picture, {})))
      let refused
      try { client.downloadUrl(down) } catch (error) { refused = error.code }
      print({ signed: [shown.status, shown.headers.get('content-type'), refused] })
      const again = await client.upload(grant, bytes, { contentType }).catch((error) => error)
      const next = await client.action(api.lab.grantUpload, { maximumBytes: 1_000n })
      const other = await client.upload(next, bytes, { contentType: 'image/png' })
        .catch((error) => error)
      const long = await client.upload(next, new Uint8Array(1_001)).catch((error) => error)
      const absent = await client.download(down, { range: { start: 9_999, end: 10_000 } })
        .catch((error) => error)
      print({ rejected: [again, other, long, absent].map(({ code }) => code) })
    } catch (error) {
      print({ error: String(error.code ?? error) })
    }
  },
  reconnect: () => client.reconnectNow(),
  close: () => { client.close(); process.exit(0) },
}
for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line)
  commands[command.do](command)
}
`
