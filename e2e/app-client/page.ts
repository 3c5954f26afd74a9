/** A page with React that uses the package `svc`, and the server that serves it and commands it. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { build } from 'esbuild'

const ROOT = join(import.meta.dirname, '../..')

/** Reports what it shows to its server after each change, and asks it for commands. */
const PAGE = `
import { createElement as h, Component, Suspense, useEffect } from 'react'
import { createRoot } from 'react-dom/client'
import { createClient, indexedDbStore } from 'svc/client'
import { SvcProvider, useConnectionState, useMutation, useQuery } from 'svc/react'
import { api } from './api'

const settings = await (await fetch('/settings')).json()
const client = createClient({
  ...settings, target: 'channel:production',
  store: indexedDbStore('svc e2e'), deadlineMillis: 3_000,
})
const { channel } = settings
const report = () => fetch('/report', { method: 'POST', body: JSON.stringify({
  names: document.querySelector('#names')?.textContent ?? null,
  bodies: [...document.querySelectorAll('li')].map((item) => item.textContent),
  state: document.querySelector('#state')?.textContent ?? null,
  error: document.querySelector('#error')?.textContent ?? null,
}) })

function Names() {
  const channels = useQuery(api.channels.list, {}, { suspense: true })
  return h('p', { id: 'names' }, channels.map(({ name }) => name).join())
}
function Messages() {
  const messages = useQuery(api.messages.list, { channel, limit: 200n })
  const skipped = useQuery(api.messages.list, 'skip')
  const send = useMutation(api.messages.send)
  useEffect(() => {
    globalThis.send = (body) => send({ channel, author: 'page', body })
  }, [send])
  if (messages.status !== 'ready') return h('p', {}, messages.status)
  return h('ul', { title: skipped.status },
    messages.value.toReversed().map(({ _id, body }) => h('li', { key: _id }, body)))
}
function State() {
  const { status, pendingMutations } = useConnectionState()
  return h('p', { id: 'state' }, status + ' ' + pendingMutations)
}
class Boundary extends Component {
  state = { code: null }
  static getDerivedStateFromError({ code }) { return { code } }
  render() {
    const { code } = this.state
    return code ? h('p', { id: 'error' }, code) : this.props.children
  }
}
function Failing() {
  useQuery(api.messages.list, { channel, limit: 999n }, { suspense: true })
  return null
}
createRoot(document.querySelector('main')).render(h(SvcProvider, { client },
  h(Suspense, { fallback: 'waiting' }, h(Names)), h(Messages), h(State),
  h(Boundary, {}, h(Suspense, { fallback: null }, h(Failing)))))
new MutationObserver(report).observe(document.body, {
  subtree: true, childList: true, characterData: true,
})
for (;;) {
  const { body } = await (await fetch('/command')).json()
  globalThis.send(body)
}
`

export interface Shown {
  readonly names: string | null
  readonly bodies: readonly string[]
  readonly state: string | null
  readonly error: string | null
}

export interface PageServer {
  readonly origin: string
  readonly reports: Shown[]
  settings: object
  /** Bundles the page in a directory with `api.ts` and the package. */
  prepare(directory: string): Promise<void>
  /** Has the page send a message. */
  send(body: string): void
  close(): void
}

export async function pageServer(): Promise<PageServer> {
  let script = ''
  const commands: string[] = []
  let waiting: ((body: string) => void) | null = null
  const server = createServer(async (request, response) => {
    const json = (value: unknown) => response.end(JSON.stringify(value))
    if (request.url === '/settings') json(page.settings)
    else if (request.url === '/command') {
      const next = commands.shift()
      const body = next ?? (await new Promise<string>((resolve) => (waiting = resolve)))
      waiting = null
      json({ body })
    } else if (request.url === '/report') {
      let text = ''
      for await (const chunk of request) text += chunk
      page.reports.push(JSON.parse(text))
      response.end()
    } else if (request.url === '/page.js') {
      response.setHeader('content-type', 'text/javascript')
      response.end(script)
    } else {
      response.setHeader('content-type', 'text/html; charset=utf-8')
      response.end('<title>page</title><main></main><script type="module" src="/page.js"></script>')
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const reports: Shown[] = []
  const page: PageServer = {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    reports,
    settings: {},
    async prepare(directory) {
      const result = await build({
        stdin: { contents: PAGE, resolveDir: directory, loader: 'js' },
        bundle: true,
        write: false,
        format: 'esm',
        target: 'es2022',
        nodePaths: [join(ROOT, 'node_modules')],
        define: { 'process.env.NODE_ENV': '"development"' },
      })
      script = result.outputFiles[0]!.text
    },
    send: (body) => (waiting === null ? void commands.push(body) : waiting(body)),
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
  return page
}
