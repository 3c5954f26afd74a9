/** An installation in which every text that others choose attacks the page that shows it. */
import { execFileSync } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Application, application, type Json, operationId, UNTYPED } from '../application.ts'
import { argv } from '../argv.ts'
import { untilHandled } from '../deliveries/campaign.ts'
import { call, text } from '../harness.ts'
import { callOf, uploadOf } from './console-calls.ts'
import { type ConsolePage, openConsole } from './console-page.ts'

const MARKUP = '<img src=x onerror=window.attacked=1><x-attacked></script>&lt;b&gt;'

/** A text with markup, bidirectional and invisible characters, which names its field. */
export const hostile = (field: string): string => `${field}\u202e\u200b${MARKUP}`

/** The text as the page shows it. */
export const visible = (field: string): string => `${field}\\u{202e}\\u{200b}${MARKUP}`

/** The text as JSON to edit shows it. */
export const visibleJson = (field: string): string => `${field}\\u202e\\u200b${MARKUP}`

/** Texts that are an attack as a whole: as an address, a key of an object, a style or an entity. */
export const WHOLE: readonly string[] = [
  'javascript:window.attacked=2',
  '__proto__',
  'constructor',
  'url(http://attacker.test/style)',
  '&lt;img src=x onerror=window.attacked=3&gt;',
  '<svg/onload=window.attacked=4>',
  '"><iframe src=http://attacker.test/frame>',
  "' onmouseover='window.attacked=5",
]

export const LONG_CHARACTERS = 900_000
/** Git permits no white space in the name of a branch. */
export const BRANCH = 'branch\u202e<img/src=x/onerror=window.attacked=6>'
export const MEDIA_TYPE = 'text/html;name="<img src=x onerror=window.attacked=7>"'

const SCHEMA = `import { defineSchema, table, v } from 'svc'
export default defineSchema({
  items: table({
    text: v.string(),
    constructor: v.string(),
    ref: v.nullable(v.id('items')),
    bytes: v.bytes(),
    whole: v.int64(),
    ratio: v.float64(),
    flag: v.boolean(),
    nothing: v.null(),
    at: v.timestamp(),
    absent: v.optional(v.string()),
    list: v.array(v.string()),
    inner: v.object({ constructor: v.string() }),
    either: v.union(v.literal(${JSON.stringify(hostile('literal'))}), v.literal('plain')),
    map: v.record(v.string()),
    some: v.any(),
  })
    .index('byText', ['text'])
    .index('constructor', ['constructor']),
})
`

const FUNCTIONS = `import { internalMutation, mutation, query, v } from 'svc'
import { internal } from '../_generated/api'
const clients = ['confidential']
export const fail = query({
  clients,
  arguments: { text: v.string() },
  returns: v.null(),
  handler: (_, { text }) => {
    throw new Error(text)
  },
})
export const note = mutation({
  clients,
  arguments: { text: v.string(), field: v.string() },
  returns: v.null(),
  handler: (ctx, { text, field }) => {
    console.log(text)
    ctx.log.warn(text, { [field]: text + '\\nnext line', ['__proto__']: text, constructor: text,
      trace_id: text, durationMicros: 9e15 })
    return null
  },
})
export const echo = query({
  clients,
  arguments: {
    kind: v.union(v.literal(${JSON.stringify(hostile('choice'))}), v.literal('plain')),
    text: v.optional(v.string()).default(${JSON.stringify(hostile('default'))}),
    constructor: v.optional(v.string()),
  },
  returns: v.any(),
  handler: (_, given) => given,
})
export const work = internalMutation({
  arguments: { text: v.string() },
  returns: v.null(),
  handler: (_, { text }) => {
    if (text !== 'later') throw new Error(text)
    return null
  },
})
export const later = mutation({
  clients,
  arguments: { text: v.string(), minutes: v.float64() },
  returns: v.null(),
  handler: async (ctx, { text, minutes }) => {
    await ctx.scheduler.runAfter({ minutes }, internal.hostile.work, { text })
    return null
  },
})
export const onEvent = internalMutation({
  arguments: { delivery: v.httpDelivery() },
  handler: (_, { delivery }) => {
    throw new Error((delivery.json as { failure: string }).failure)
  },
})
`
const CRONS = `import { cronJobs } from 'svc'
import { internal } from './_generated/api'
export default cronJobs({
  constructor: { schedule: '0 7 1 1 *', timeZone: 'UTC', function: internal.hostile.work,
    arguments: { text: ${JSON.stringify(hostile('cron'))} } },
})
`
const HTTP = `import { hook, httpRoutes } from 'svc'
import { internal } from './_generated/api'
export default httpRoutes({
  constructor: hook({
    path: '/open',
    verify: 'none',
    headers: ['user-agent', 'x-attack'],
    maximumBytes: 512 * 1024,
    once: (delivery) => (delivery.json as { id: string }).id,
    handler: internal.hostile.onEvent,
  }),
})
`

export interface HostileWorld {
  readonly app: Application
  readonly page: ConsolePage
  readonly clientId: string
  readonly operatorId: string
  readonly bucketId: string
  readonly documentIds: readonly string[]
  readonly deliveryIds: readonly string[]
  /** The request of a Function that logged hostile texts. */
  readonly requestId: string
  readonly root: readonly string[]
}

/** Sends an operation as the page does, with the rights of the owner. */
type Send = (name: string, parts: object) => Promise<Json>

const newId = (prefix: string): string => operationId().replace('opn', prefix)
const nowMicros = (): string => `${Date.now()}000`

async function invoke(app: Application, name: string, given: object): Promise<Json> {
  const response = await fetch(`${app.server.application}/v1/functions/${name}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-service-key': app.key,
      'x-service-target': 'channel:production',
    },
    body: JSON.stringify(given),
  })
  return response.json()
}

function write(workspace: string): void {
  for (const file of ['functions/channels.ts', 'functions/messages.ts', 'functions/notes.ts']) {
    rmSync(join(workspace, file), { force: true })
  }
  writeFileSync(join(workspace, 'schema.ts'), SCHEMA)
  writeFileSync(join(workspace, 'functions/hostile.ts'), FUNCTIONS)
  writeFileSync(join(workspace, 'crons.ts'), CRONS)
  writeFileSync(join(workspace, 'http.ts'), HTTP)
}

/** Fills every field that a stranger, a developer or another operator may fill. */
export async function hostileWorld(): Promise<HostileWorld> {
  const app = await application(write)
  const root = argv`--root ${app.installation.productRoot}`
  await app.svc(argv`environments update ${root} --name ${hostile('environment')}`)
  const invite = argv`invite --role owner --scope installation --operator-name ${hostile('owner')}`
  const { code } = await app.svc(invite)
  const device = hostile('own device')
  const login = argv`login --url ${app.server.management} --code-env CODE --device ${device}`
  await app.svc(login, { CODE: code })
  await releases(app, root)
  const page = await openConsole(app)
  const { projectId, environmentId } = linkOf(app)
  const send: Send = async (name, parts) => {
    const { status, body } = await callOf(page.tab, name, { environmentId, ...parts })
    if (status !== 200) throw new Error(`${name}: ${status} ${JSON.stringify(body)}`)
    return body.result
  }
  const clientId = await clients(send)
  const documentIds = await documents(app, root, send)
  for (const [i, value] of [hostile('variable'), ...WHOLE].entries()) {
    const body = { expectedRevision: String(i), kind: 'variable', value }
    const params = { name: `V${i}` }
    await send('setConfiguration', { params, body: { ...body, changedAtMicros: nowMicros() } })
  }
  const bucketId = await files(send, page, environmentId)
  const scope = { kind: 'environment', projectId, environmentId }
  const operatorId = await operators(app, send, scope)
  await logs(app)
  const deliveryIds = await deliveries(app, root)
  await send('runCron', { params: { cron: 'constructor' } })
  await untilHandled({ app, path: '', secrets: { STANDARD: '', GITHUB: '' } })
  await invoke(app, 'hostile.later', { text: 'later', minutes: 600 })
  const { items } = await send('listLogs', { query: { function: 'hostile.note', limit: 10 } })
  const { requestId } = items[0]
  return { app, page, clientId, operatorId, bucketId, documentIds, deliveryIds, requestId, root }
}

export function linkOf({ installation }: Application): Json {
  return JSON.parse(readFileSync(join(installation.productRoot, 'service.json'), 'utf8'))
}

async function clients(send: Send): Promise<string> {
  const scopes = ['mutation', 'query']
  const ids: string[] = []
  for (const name of [hostile('client'), ...WHOLE]) {
    const clientId = newId('app')
    const body = { clientId, name, kind: 'confidential', maximumScopes: scopes }
    await send('createApplicationClient', { body: { ...body, createdAtMicros: nowMicros() } })
    ids.push(clientId)
  }
  for (const name of [hostile('credential'), ...WHOLE]) {
    const body = { credentialId: newId('crd'), name, scopes, createdAtMicros: nowMicros() }
    await send('createCredential', { params: { clientId: ids[0]! }, body })
  }
  return ids[0]!
}

async function documents(
  app: Application,
  root: readonly string[],
  send: Send,
): Promise<readonly string[]> {
  const line = (text: string, absent = hostile('optional')): string =>
    JSON.stringify({
      text,
      constructor: hostile('field'),
      ref: null,
      bytes: Buffer.from(hostile('bytes')).toString('base64url'),
      whole: '9007199254740993',
      ratio: 0.5,
      flag: true,
      nothing: null,
      at: '2026-01-31T08:00:00Z',
      absent,
      list: [hostile('list'), ...WHOLE],
      inner: { constructor: hostile('inner') },
      either: hostile('literal'),
      map: Object.fromEntries([hostile('key'), 'constructor'].map((key) => [key, hostile('map')])),
      some: { constructor: { [hostile('any')]: true } },
    })
  const texts = [hostile('document'), ...WHOLE].map((text) => line(text))
  const file = join(app.installation.directory, 'items.jsonl')
  writeFileSync(file, [...texts, line('long', 'x'.repeat(LONG_CHARACTERS)), ''].join('\n'))
  await app.svc(argv`data import items ${file} ${root} --target channel:production`)
  const query = { target: 'channel:production', table: 'items', range: [], order: 'asc', limit: 50 }
  const { items } = await send('queryDocuments', { body: query })
  return items.map(({ id }: Json) => id)
}

async function files(send: Send, { tab }: ConsolePage, environmentId: string): Promise<string> {
  const configuration = { name: 'uploads', quotaBytes: null, maximumObjectBytes: null }
  await send('createBucket', { body: { configuration, changedAtMicros: nowMicros() } })
  const { items } = await send('listBuckets', { query: { limit: 50 } })
  const { bucketId } = items.find((each: Json) => each.configuration.name === 'uploads')
  for (const objectKey of [hostile('key'), ...WHOLE]) {
    const params = { bucketId, objectKey }
    const given = { environmentId, params, contentType: MEDIA_TYPE }
    const { status, body } = await uploadOf(tab, 'putObject', given, MARKUP)
    if (status !== 200) throw new Error(`putObject: ${status} ${JSON.stringify(body)}`)
  }
  for (const name of [hostile('storage'), ...WHOLE]) {
    const body = { name, access: 'read', changedAtMicros: nowMicros() }
    await send('issueStorageKey', { params: { bucketId }, body })
  }
  return bucketId
}

/** Operators and devices, with derived sessions and their records in the audit. */
async function operators(app: Application, send: Send, scope: object): Promise<string> {
  let operatorId = ''
  for (const operatorName of [...WHOLE, hostile('operator')]) {
    const body = { operatorName, role: 'observer', scope }
    const { code } = await send('issueInvitation', { body })
    const deviceName = operatorName === WHOLE[1] ? WHOLE[4] : hostile('device')
    const exchange = { body: { code, deviceName } }
    const login = await call(app.server.management, 'POST', '/v1/auth/exchange', exchange)
    operatorId = text(login.body, 'operator', 'operatorId')
    const given = { capabilities: ['data:read'], scope, lifetimeSeconds: 600, purpose: 'mcp' }
    const derived = await call(app.server.management, 'POST', '/v1/auth/sessions/derived', {
      token: text(login.body, 'accessToken'),
      body: given,
    })
    if (derived.status !== 201) throw new Error(JSON.stringify(derived.body))
  }
  return operatorId
}

async function releases(app: Application, root: readonly string[]): Promise<void> {
  const { workspace } = app.installation
  const release = argv`release --channel production ${UNTYPED} ${root}`
  writeFileSync(join(workspace, 'functions/second.ts'), 'export const second = 2\n')
  await app.svc(argv`${release} --message ${hostile('message')}`)
  const git = (...args: string[]): string =>
    execFileSync('git', args, { cwd: workspace }).toString()
  git('init', '--quiet', '--initial-branch', BRANCH)
  git('add', '.')
  const identity = ['-c', 'user.name=ana', '-c', 'user.email=ana@example.com']
  git(...identity, 'commit', '--quiet', '--message', hostile('commit'))
  writeFileSync(join(workspace, 'functions/second.ts'), 'export const third = 3\n')
  await app.svc(release, { PATH: process.env.PATH ?? '' })
  await app.svc(argv`promote ${root} --channel staging --release ${app.releaseId} --expected empty`)
}

async function logs(app: Application): Promise<void> {
  const long = 'x'.repeat(LONG_CHARACTERS)
  for (const each of [long, ...WHOLE, hostile('error')]) {
    await invoke(app, 'hostile.fail', { text: each })
  }
  await invoke(app, 'hostile.later', { text: hostile('scheduled'), minutes: 0 })
  await invoke(app, 'hostile.note', { text: hostile('log'), field: hostile('field') })
}

async function deliveries(app: Application, root: readonly string[]): Promise<string[]> {
  const { path } = await app.svc(argv`http mount main --target channel:production ${root}`)
  const ids: string[] = []
  for (const event of [hostile('event'), ...WHOLE]) {
    const query = new URLSearchParams({ [hostile('parameter')]: hostile('query') })
    const body = { id: event, failure: hostile('failure'), text: hostile('body') }
    const response = await fetch(`${app.server.application}${path}/open?${query}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'user-agent': `agent${MARKUP}`,
        'x-attack': `header${MARKUP}`,
      },
      body: JSON.stringify(body),
    })
    const accepted = (await response.json()) as Json
    if (response.status !== 202) throw new Error(`${response.status} ${JSON.stringify(accepted)}`)
    ids.push(accepted.deliveryId)
  }
  return ids
}
