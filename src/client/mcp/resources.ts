/**
 * The resources of an agent: the documents of `svc docs`, which this program carries, and what the
 * server says about the Release that is served and about the last failures.
 */
import { DOCUMENTS } from '../../docs/embedded.generated.ts'
import type { Capability } from '../../value/capabilities.ts'
import type { Json } from '../../value/strict-json.ts'
import type { LogPage, LogRecord } from '../../wire/logs.ts'
import { listFunctions, listTables } from '../../wire/operations/catalogs.ts'
import { listLogs } from '../../wire/operations/logs.ts'
import { readStatus } from '../../wire/operations/status.ts'
import type { Status } from '../../wire/status.ts'
import type { Context } from '../contexts.ts'
import { timeText } from '../timestamps.ts'
import type { AgentSession } from './agent-session.ts'
import { dataResult } from './results.ts'

const DOCS = 'svc://docs/'
/** Newest records of the log among which failures are looked for. */
const RECORDS = 200
const FAILURES_MAX = 20

export interface ListedResource {
  readonly uri: string
  readonly name: string
  readonly title: string
  readonly mimeType: string
}

export interface ResourceText {
  readonly mimeType: string
  readonly text: string
}

interface ServerResource {
  readonly title: string
  readonly capability: Capability
  /** The tool that has all of it. */
  readonly tool: string
  read(session: AgentSession, context: Pick<Context, 'tools'>): Promise<unknown>
}

const SERVER_RESOURCES: Readonly<Record<string, ServerResource>> = {
  'svc://environment/status': {
    title: 'Workspaces, Releases and Channels of the Environment',
    capability: 'releases:read',
    tool: readStatus.name,
    read: (session) => session.call(readStatus, {}),
  },
  'svc://environment/schema': {
    title: 'Tables of the Release that is served, with fields and indexes',
    capability: 'releases:read',
    tool: listTables.name,
    read: async (session) =>
      session.call(listTables, { query: { target: await servedTarget(session) } }),
  },
  'svc://environment/functions': {
    title: 'Functions of the Release that is served, with validators',
    capability: 'releases:read',
    tool: listFunctions.name,
    read: async (session) =>
      session.call(listFunctions, { query: { target: await servedTarget(session) } }),
  },
  'svc://environment/failures': {
    title: 'The last failures of Functions, with the lines of their source',
    capability: 'logs:read',
    tool: listLogs.name,
    read: lastFailures,
  },
}

/** Lists the documents, and what a session with these capabilities may read. */
export function listedResources(held: ReadonlySet<Capability>): readonly ListedResource[] {
  const documents = Object.entries(DOCUMENTS).map(([topic, text]) => ({
    uri: DOCS + topic,
    name: `docs/${topic}`,
    title: titleOf(text),
    mimeType: 'text/markdown',
  }))
  const served = Object.entries(SERVER_RESOURCES)
    .filter(([, { capability }]) => held.has(capability))
    .map(([uri, { title }]) => ({
      uri,
      name: uri.slice('svc://'.length),
      title,
      mimeType: 'application/json',
    }))
  return [...served, ...documents]
}

/** Reads a resource; returns null for an unknown address. Throws as `AgentSession.call` does. */
export async function readResource(
  uri: string,
  session: AgentSession,
  context: Pick<Context, 'tools'>,
): Promise<ResourceText | null> {
  if (Object.hasOwn(SERVER_RESOURCES, uri)) {
    const { capability, tool, read } = SERVER_RESOURCES[uri]!
    const { capabilities } = await session.open()
    if (!capabilities.has(capability)) return null
    const data = (await read(session, context)) as Json
    const more = () => `The tool ${tool} has all of it.`
    const { text } = dataResult(data, { source: uri, offset: 0, more })
    return { mimeType: 'application/json', text }
  }
  const topic = uri.startsWith(DOCS) ? uri.slice(DOCS.length) : ''
  if (!Object.hasOwn(DOCUMENTS, topic)) return null
  return { mimeType: 'text/markdown', text: DOCUMENTS[topic]! }
}

function titleOf(text: string): string {
  return text.slice('# '.length, text.indexOf('\n'))
}

/** The target that applications reach: of `svc dev`, of the serving policy, or of a Channel. */
export async function servedTarget(session: AgentSession): Promise<string> {
  const local = await session.local()
  if (local !== null) return local.target
  const status = (await session.call(readStatus, {})) as Status
  if (status.servingPolicy !== null) return 'environment:default'
  const names = status.channels.map(({ channel }) => channel)
  const [first = 'production'] = names
  return `channel:${names.find((name) => name === 'production') ?? first}`
}

async function lastFailures(session: AgentSession, context: Pick<Context, 'tools'>): Promise<Json> {
  const query = { level: 'warn', stream: 'function', limit: RECORDS }
  const { items } = (await session.call(listLogs, { query })) as LogPage
  const failures = items.filter(({ event }) => event === 'function.failed').slice(-FAILURES_MAX)
  const local = await session.local()
  const tools = local === null ? null : ((await context.tools?.()) ?? null)
  const shown = failures.map(async (record) => {
    // Only a `svc dev` serves the source that is on this machine.
    const failure = await tools?.failureOf(record, local!.workspaceDirectory)
    return failureOf(record, failure?.codeFrame ?? [])
  })
  return { failures: await Promise.all(shown) }
}

/** `trace` has the lines of the stack, by the files of the Workspace. */
function failureOf(
  { atMicros, message, fields = {}, ...record }: LogRecord,
  source: readonly string[],
): Json {
  return {
    at: timeText(atMicros),
    function: record.function ?? null,
    releaseId: record.releaseId ?? null,
    requestId: record.requestId ?? null,
    message,
    trace: (fields.trace ?? null) as Json,
    source: [...source],
  }
}
