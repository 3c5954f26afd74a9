/** The examples of the commands, and documents that need programs beside the server. */
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { CLI_RUNS } from '../../build/samples/runs/cli.ts'
import { DEVELOPMENT_RUNS } from '../../build/samples/runs/development.ts'
import { LONG_RUNS } from '../../build/samples/runs/server.ts'
import { convexExport, convexId, STORAGE_NUMBER } from '../../testing/imports/convex-exports.ts'
import { type WorkloadIssuers, workloadIssuers } from '../../testing/providers/workload-issuers.ts'
import { argv } from '../argv.ts'
import { CLIENT, run } from '../harness.ts'
import { readDocument } from './reader.ts'
import { type Machine, serverMachine } from './worlds.ts'

const FIXTURES = join(import.meta.dirname, '../../testing/imports/fixtures')
/** Only a hang takes this long: a document has up to two hundred commands. */
const DEADLINE_MS = 3_600_000
const USERS = 10_001

let directory: string
let issuers: WorkloadIssuers
let machine: Machine
/** Gives a token for the subject in the path, as a platform of pipelines does when a job asks. */
const tokens = createServer((request, response) => {
  const sub = `repo:acme/app:${request.url!.slice(1)}`
  void issuers.token('github', Date.now(), { sub }).then((token) => response.end(token))
})
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'svc-examples-'))
  cpSync(FIXTURES, directory, { recursive: true })
  writeFileSync(join(directory, 'convex.zip'), users())
  const key = join(directory, 'backup.key')
  const { stdout, stderr } = await run(argv`${CLIENT} backup keygen --out ${key}`)
  const recipient = /age1\w+/.exec(stdout)?.[0]
  if (recipient === undefined) throw new Error(`no recipient in ${stdout}${stderr}`)
  issuers = await workloadIssuers()
  const providers = join(directory, 'workload-oidc.json')
  writeFileSync(providers, JSON.stringify(issuers.file), { mode: 0o600 })
  await new Promise<void>((resolve) => tokens.listen(0, '127.0.0.1', resolve))
  const { port } = tokens.address() as AddressInfo
  const places = {
    FIXTURES: directory,
    TOKENS: `http://127.0.0.1:${port}`,
    'age1...': recipient,
    'backup.key': key,
  }
  const settings = {
    SERVICE_BACKUP_RECIPIENTS: recipient,
    SERVICE_PLATFORM_WORKLOAD_OIDC_CONFIG: providers,
  }
  machine = await serverMachine(settings, places)
})
afterAll(async () => {
  await machine?.dispose()
  tokens.close()
  await issuers?.close()
  rmSync(directory, { recursive: true, force: true })
})

/** An export with a document and its file. */
function users(): Uint8Array {
  const face = convexId(STORAGE_NUMBER, 1)
  const shape =
    '{"_creationTime": normalfloat64, "_id": id<10001>, "face": id<10900>, "name": string}'
  const documents = [[convexId(USERS, 1), { _creationTime: 1, face, name: 'ana' }] as const]
  const files = [{ id: face, contentType: 'image/png', content: 'png' }]
  return convexExport([{ name: 'users', number: USERS, shape, documents }], files)
}

test.each([...CLI_RUNS, ...DEVELOPMENT_RUNS, ...LONG_RUNS])(
  'the commands of $document succeed',
  { timeout: DEADLINE_MS },
  async (each) => {
    const { commands } = await readDocument(each, await machine.open())
    expect(commands.length).toBeGreaterThan(0)
  },
)
