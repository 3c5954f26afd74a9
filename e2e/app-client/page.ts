/** A page with React that uses the package `svc`, and the server that serves it and commands it. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { build } from 'esbuild'
import type { UserTokens } from '../../testing/providers/user-tokens.ts'

const ROOT = join(import.meta.dirname, '../..')

/** Reports its content to its server after each change, and fetches commands from it. */
const PAGE = `
import { createElement as h, Component, StrictMode, Suspense, useEffect, useState } from 'react'
import { createRoot } from 'react-dom/client'
import { createClient, indexedDbStore } from 'svc/client'
import {
  SvcProvider, useAction, useClient, useConnectionState, useMutation, usePaginatedQuery, useQuery,
} from 'svc/react'
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
  pages: document.querySelector('#pages')?.textContent ?? null,
  file: document.querySelector('#file')?.textContent ?? null,
}) })
const commands = {}

function Names() {
  const channels = useQuery(api.channels.list, {}, { suspense: true })
  return h('p', { id: 'names' }, channels.map(({ name }) => name).join())
}
function Messages() {
  const messages = useQuery(api.messages.list, { channel, limit: 200n })
  const skipped = useQuery(api.messages.list, 'skip')
  const send = useMutation(api.messages.send)
  useEffect(() => {
    commands.send = (body) => send({ channel, author: 'page', body })
  }, [send])
  if (messages.status !== 'ready') return h('p', {}, messages.status)
  return h('ul', { title: skipped.status },
    messages.value.toReversed().map(({ _id, body }) => h('li', { key: _id }, body)))
}
function Pages() {
  // Arguments that are equal by content are the same list, whichever object they are.
  const { status, items, loadMore } = usePaginatedQuery(api.lab.page, { channel }, { pageSize: 2 })
  useEffect(() => {
    commands.more = loadMore
  }, [loadMore])
  return h('p', { id: 'pages' }, status + ': ' + items.map(({ body }) => body).join())
}
function File() {
  const client = useClient()
  const grantUpload = useAction(api.lab.grantUpload)
  const grantDownload = useAction(api.lab.grantDownload)
  const picture = useAction(api.lab.picture)
  const [shown, show] = useState('')
  const [source, setSource] = useState(null)
  useEffect(() => {
    commands.picture = async () => setSource(client.downloadUrl(await picture()))
  }, [client, picture])
  useEffect(() => {
    commands.file = async (text) => {
      try {
        const grant = await grantUpload({ maximumBytes: 100n })
        const body = new Blob([text], { type: 'text/plain' })
        const { fileId, sha256 } = await client.upload(grant, body)
        const down = await grantDownload({ file: fileId })
        const whole = await client.download(down)
        const part = await client.download(down, { range: { start: 0, end: 1 } })
        const textOf = ({ bytes }) => new TextDecoder().decode(bytes)
        show([textOf(whole), textOf(part), part.size, whole.sha256 === sha256].join())
      } catch (error) {
        show(error.code + ': ' + error.message)
      }
    }
  }, [client, grantUpload, grantDownload])
  return h('div', {}, h('p', { id: 'file' }, shown), source && h('img', {
    src: source,
    onLoad: ({ target }) => show('picture ' + target.naturalWidth),
    onError: () => show('no picture'),
  }))
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
createRoot(document.querySelector('main')).render(h(StrictMode, {}, h(SvcProvider, { client },
  h(Suspense, { fallback: 'waiting' }, h(Names)), h(Messages), h(State), h(Pages), h(File),
  h(Boundary, {}, h(Suspense, { fallback: null }, h(Failing))))))
new MutationObserver(report).observe(document.body, {
  subtree: true, childList: true, characterData: true,
})
for (;;) {
  const { name, body } = await (await fetch('/command')).json()
  commands[name](body)
}
`

export interface Shown {
  readonly names: string | null
  readonly bodies: readonly string[]
  readonly state: string | null
  readonly error: string | null
  readonly pages: string | null
  readonly file: string | null
}

export interface PageServer {
  readonly origin: string
  readonly reports: Shown[]
  settings: object
  /** Bundles the page in a directory with `api.ts` and the package. */
  prepare(directory: string): Promise<void>
  /** Sends a command: `send` a message, load `more`, store a `file`, show a `picture`. */
  do(name: 'send' | 'more' | 'file' | 'picture', body?: string): void
  close(): void
}

/** `tokens` are given at /token, for programs that sign in. */
export async function pageServer(tokens: UserTokens): Promise<PageServer> {
  let script = ''
  const commands: object[] = []
  let waiting: ((command: object) => void) | null = null
  const server = createServer(async (request, response) => {
    const json = (value: unknown) => response.end(JSON.stringify(value))
    if (request.url === '/settings') json(page.settings)
    else if (request.url === '/command') {
      const next = commands.shift()
      const command = next ?? (await new Promise<object>((resolve) => (waiting = resolve)))
      waiting = null
      json(command)
    } else if (request.url?.startsWith('/token')) {
      response.end(await tokens.give(request.url.endsWith('?refresh')))
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
    do(name, body = '') {
      if (waiting === null) commands.push({ name, body })
      else waiting({ name, body })
    },
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
  return page
}
