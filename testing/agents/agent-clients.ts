/** The agent of an editor: a client of the Model Context Protocol that starts `svc mcp`. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js'

/** Milliseconds of one request, which only a hang takes. */
const REQUEST_MS = 240_000

// biome-ignore lint/suspicious/noExplicitAny: documents of many shapes.
type Json = any

/** A result of a tool: its text, and the document in it. */
export interface ToolResult {
  readonly isError: boolean
  readonly text: string
  readonly document: Json
}

export interface Agent {
  /** Returns the text on stderr, which editors keep as a log. */
  readonly log: () => string
  /** Times that the program announced another list of tools. */
  readonly changes: () => number
  readonly instructions: string
  tools(): Promise<Json[]>
  call(name: string, args?: unknown): Promise<ToolResult>
  resources(): Promise<Json[]>
  read(uri: string): Promise<string>
  /** Closes stdin and waits for the end of the program. */
  close(): Promise<void>
}

export interface AgentOptions {
  readonly environment: Readonly<Record<string, string>>
  readonly directory: string
}

/** Starts the program and greets it. */
export async function connectAgent(
  command: readonly string[],
  { environment, directory }: AgentOptions,
): Promise<Agent> {
  const [file = '', ...args] = command
  const transport = new StdioClientTransport({
    command: file,
    args,
    env: { ...environment },
    cwd: directory,
    stderr: 'pipe',
  })
  let log = ''
  transport.stderr?.on('data', (chunk: Buffer) => {
    log += chunk.toString()
  })
  let changes = 0
  const client = new Client({ name: 'test-agent', version: '1.0.0' })
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => {
    changes += 1
  })
  const options = { timeout: REQUEST_MS }
  await client.connect(transport, options)
  return {
    log: () => log,
    changes: () => changes,
    instructions: client.getInstructions() ?? '',
    tools: async () => (await client.listTools({}, options)).tools,
    resources: async () => (await client.listResources({}, options)).resources,
    read: async (uri) => {
      const { contents } = await client.readResource({ uri }, options)
      return String((contents[0] as { readonly text?: string } | undefined)?.text)
    },
    call: async (name, given = {}) => {
      const params = { name, arguments: given as Record<string, unknown> }
      const result = await client.callTool(params, undefined, options)
      const [{ text }] = result.content as [{ readonly text: string }]
      return { isError: result.isError === true, text, document: JSON.parse(text) }
    },
    close: () => client.close(),
  }
}
