/** `svc docs`: the references and guides that this version carries, without a server. */
import { Fault } from '../../errors/fault.ts'
import { BUILD_VERSION } from '../../value/version.ts'
import { suggestion } from '../command-line/arguments.ts'
import {
  type CommandSpec,
  type Context,
  command,
  flag,
  option,
  optionalArgument,
} from '../contexts.ts'
import { usage } from '../usage.ts'

const PORT_MAX = 65_535

export const docsCommand: CommandSpec = command({
  name: 'docs',
  summary: 'Show the references and guides of this version',
  details: [
    'Without a topic it lists them. It needs no server and no login.',
    'With --serve it serves them as pages with a search, and the contract, at 127.0.0.1 until it',
    'is interrupted. The pages request nothing of other hosts.',
  ],
  positionals: [optionalArgument('TOPIC', 'One of the list, such as cli')],
  options: {
    serve: flag('Serve the documents as pages on this machine'),
    port: option('PORT', 'Port of the pages; a free one by default'),
    open: flag('Open the pages in the browser'),
  },
  examples: ['svc docs', 'svc docs settings', 'svc docs --serve --open'],
  async run(context, { serve, port, open }, [topic]) {
    const { output } = context
    if (!serve && (port !== undefined || open)) {
      throw usage('--port and --open need --serve.', docsCommand)
    }
    const { DOCUMENTS } = await import('../../docs/embedded.generated.ts')
    if (topic !== undefined && !Object.hasOwn(DOCUMENTS, topic)) {
      const nearest = suggestion(topic, Object.keys(DOCUMENTS))
      throw usage(`Unknown topic.${nearest} \`svc docs\` lists the topics.`, docsCommand)
    }
    if (serve) {
      const page = topic === undefined ? '' : `${topic}.html`
      return serveSite(context, DOCUMENTS, { port: portOf(port), page, opens: open })
    }
    if (topic === undefined) {
      const topics = Object.entries(DOCUMENTS).map(([name, text]) => ({
        name,
        title: titleOf(text),
      }))
      const rows = topics.map(({ name, title }) => [name, title])
      return output.result({ version: 1, topics }, output.table(['TOPIC', 'TITLE'], rows))
    }
    const text = DOCUMENTS[topic]!
    const document = { version: 1, topic, title: titleOf(text), text }
    await output.result(document, [text.trimEnd()])
  },
})

function titleOf(text: string): string {
  return text.slice('# '.length, text.indexOf('\n'))
}

function portOf(text: string | undefined): number {
  if (text === undefined) return 0
  const port = /^[0-9]{1,5}$/.test(text) ? Number(text) : 0
  if (port < 1 || port > PORT_MAX) {
    throw usage(`--port needs a number from 1 to ${PORT_MAX}.`, docsCommand)
  }
  return port
}

interface Serving {
  /** 0 is any free port. */
  readonly port: number
  /** Path of the page that is shown first. */
  readonly page: string
  readonly opens: boolean
}

/** Serves the pages until the command is interrupted. Throws CLIENT_INTERRUPTED then. */
async function serveSite(
  { environment, output, signal }: Context,
  topics: Readonly<Record<string, string>>,
  { port, page, opens }: Serving,
): Promise<void> {
  const [{ embeddedSite }, { DocsServer }] = await Promise.all([
    import('../../site/embedded-site.ts'),
    import('../docs-site/docs-server.ts'),
  ])
  const interrupted = new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true })
    if (signal.aborted) resolve()
  })
  const server = await DocsServer.open(embeddedSite(topics, BUILD_VERSION), port)
  try {
    const url = server.url + page
    await output.line({ event: 'ready', url }, `Documents  ${url}`)
    if (opens && !(await environment.openBrowser(url))) {
      await output.note('No browser was started. Open the address yourself.')
    }
    await output.note('Interrupt to end.')
    await interrupted
    throw new Fault('CLIENT_INTERRUPTED')
  } finally {
    server.close()
  }
}
