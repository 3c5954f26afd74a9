/**
 * Goal: clients that generators of others make from the document call every Function. Method: the
 * document of the chat template is read by two validators, then by openapi-typescript and
 * openapi-python-client, whose clients call the compiled server.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { dereference, validate } from '@readme/openapi-parser'
import { Validator } from '@seriousme/openapi-schema-validator'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Application, application, type Json } from '../application.ts'
import { argv } from '../argv.ts'
import { run } from '../harness.ts'

/** Returns the path of a program; null if this machine does not have it. */
function programAt(name: string): string | null {
  const directories = (process.env.PATH ?? '').split(delimiter)
  return directories.map((each) => join(each, name)).find((path) => existsSync(path)) ?? null
}

const TYPESCRIPT = programAt('openapi-typescript')
const PYTHON = programAt('openapi-python-client')
const why = (path: string | null, name: string): string =>
  path === null ? `${name} is not installed` : name

let app: Application
let directory: string
let file: string
let document: Json

beforeAll(async () => {
  app = await application()
  directory = join(app.installation.directory, 'generated')
  mkdirSync(directory)
  file = join(directory, 'functions.json')
  const at = argv`--remote --root ${app.installation.productRoot} --url ${app.server.application!}`
  const what = argv`--key-env KEY --target channel:production --out ${file}`
  const written = await app.svc(argv`openapi ${at} ${what}`, { KEY: app.key })
  expect(written).toMatchObject({ file, functions: 4 })
  document = JSON.parse(readFileSync(file, 'utf8'))
})
afterAll(async () => {
  await app?.installation.dispose()
})

const environment = () => ({
  PATH: process.env.PATH ?? '',
  HOME: directory,
  ORIGIN: app.server.application!,
  KEY: app.key,
})

async function succeed(command: readonly string[]): Promise<string> {
  const { status, stdout, stderr } = await run(command, { directory, environment: environment() })
  expect(status, `${command.join(' ')}\n${stdout}\n${stderr}`).toBe(0)
  return stdout
}

/** The output of each client, which wrote a message and read it back. */
const EXPECTED = { channel: 'general', bodies: ['Hello', 'Ada opened #general'], likes: 0 }

test('two validators accept the document', async () => {
  const result = await new Validator().validate(structuredClone(document))
  expect(result.errors).toBeUndefined()
  expect(await validate(structuredClone(document))).toMatchObject({ valid: true })
  expect(Object.keys((await dereference(structuredClone(document))).paths!)).toEqual([
    '/v1/functions/channels.create',
    '/v1/functions/channels.list',
    '/v1/functions/messages.list',
    '/v1/functions/messages.send',
  ])
})

test('svc openapi prints what the server answers', async () => {
  const url = `${app.server.application}/v1/functions/openapi.json?target=channel:production`
  const headers = { 'x-service-key': app.key }
  expect(await (await fetch(url, { headers })).json()).toEqual(document)
})

const CALLS = `import type { paths } from './functions.ts'
type Post<P extends keyof paths> = paths[P]['post']
type Given<P extends keyof paths> = Post<P>['requestBody']['content']['application/json']
type Answer<P extends keyof paths> = Post<P>['responses'][200]['content']['application/json']
async function call<P extends keyof paths>(path: P, given: Given<P>): Promise<Answer<P>['result']> {
  const response = await fetch(process.env.ORIGIN + path, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-service-key': process.env.KEY!,
      'x-service-target': 'channel:production',
    },
    body: JSON.stringify(given),
  })
  if (!response.ok) throw new Error(await response.text())
  return ((await response.json()) as Answer<P>).result
}
const name = 'general'
const channel: string = await call('/v1/functions/channels.create', { name, author: 'Ada' })
await call('/v1/functions/messages.send', { channel, author: 'Ada', body: 'Hello' })
const channels = await call('/v1/functions/channels.list', {})
const messages = await call('/v1/functions/messages.list', { channel, limit: 2 })
// @ts-expect-error The document has no such field.
messages[0]?.subject
const kind: 'text' | 'system' = messages[0]!.kind
if (kind !== 'text') throw new Error(kind)
const bodies = messages.map(({ body }) => body)
const likes: number | string = messages[0]!.likes
console.log(JSON.stringify({ channel: channels[0]!.name, bodies, likes }))
`

describe.skipIf(TYPESCRIPT === null)(
  `TypeScript (${why(TYPESCRIPT, 'openapi-typescript')})`,
  () => {
    test('a typed client calls every Function of the chat template', async () => {
      await succeed([TYPESCRIPT!, file, '--output', join(directory, 'functions.ts')])
      writeFileSync(join(directory, 'calls.ts'), CALLS)
      const options = ['--strict', '--noEmit', '--target', 'esnext', '--module', 'preserve']
      const types = ['--allowImportingTsExtensions', '--skipLibCheck', '--types', 'bun']
      const roots = ['--typeRoots', join(import.meta.dirname, '../../node_modules/@types')]
      const tsc = join(import.meta.dirname, '../../node_modules/typescript/bin/tsc')
      await succeed(['node', tsc, ...options, ...types, ...roots, 'calls.ts'])
      const printed = await succeed([process.execPath, join(directory, 'calls.ts')])
      expect(JSON.parse(printed)).toEqual(EXPECTED)
    })
  },
)

const PROGRAM = `import json, os
from client import AuthenticatedClient
from client.api.channels import channels_create, channels_list
from client.api.messages import messages_list, messages_send
from client.models import ChannelsCreateBody, ChannelsListBody, MessagesListBody, MessagesSendBody
client = AuthenticatedClient(
    base_url=os.environ["ORIGIN"],
    token=os.environ["KEY"],
    prefix="",
    auth_header_name="X-Service-Key",
)
at = {"client": client, "x_service_target": "channel:production"}
name = "python"
channel = channels_create.sync(body=ChannelsCreateBody(name=name, author="Ada"), **at).result
messages_send.sync(body=MessagesSendBody(channel=channel, author="Ada", body="Hello"), **at)
channels = channels_list.sync(body=ChannelsListBody(), **at).result
messages = messages_list.sync(body=MessagesListBody(channel=channel, limit=2), **at).result
assert messages[0].field_created_at.year >= 2026, messages[0]
print(json.dumps({
    "channel": next(each.name for each in channels if each.name == name),
    "bodies": [each.body for each in messages],
    "likes": messages[0].likes,
}))
`

describe.skipIf(PYTHON === null)(`Python (${why(PYTHON, 'openapi-python-client')})`, () => {
  test('a generated client calls every Function of the chat template', async () => {
    const output = ['--output-path', join(directory, 'client'), '--overwrite', '--meta', 'none']
    const warnings = await succeed([PYTHON!, 'generate', '--path', file, ...output])
    expect(warnings).not.toContain('WARNING')
    writeFileSync(join(directory, 'program.py'), PROGRAM)
    // The interpreter of the generator has what its clients import.
    const printed = await succeed([join(PYTHON!, '../python3'), join(directory, 'program.py')])
    const bodies = ['Hello', 'Ada opened #python']
    expect(JSON.parse(printed)).toEqual({ ...EXPECTED, channel: 'python', bodies })
  })
})
