/** The examples of the commands, run in an order in which each one has what it needs. */
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { CLI_RUN } from '../../build/samples/runs/cli.ts'
import { convexExport, convexId } from '../../testing/imports/convex-exports.ts'
import { argv } from '../argv.ts'
import { CLIENT, run } from '../harness.ts'
import { readDocument } from './reader.ts'
import { type Machine, serverMachine } from './worlds.ts'

const FIXTURES = join(import.meta.dirname, '../../testing/imports/fixtures')
const USERS = 10_001

let directory: string
let machine: Machine
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'svc-examples-'))
  cpSync(FIXTURES, directory, { recursive: true })
  writeFileSync(join(directory, 'convex.zip'), users())
  const key = join(directory, 'backup.key')
  const { stdout, stderr } = await run(argv`${CLIENT} backup keygen --out ${key}`)
  const recipient = /age1\w+/.exec(stdout)?.[0]
  if (recipient === undefined) throw new Error(`no recipient in ${stdout}${stderr}`)
  const places = { FIXTURES: directory, 'age1...': recipient, 'backup.key': key }
  machine = await serverMachine({ SERVICE_BACKUP_RECIPIENTS: recipient }, places)
})
afterAll(async () => {
  await machine?.dispose()
  rmSync(directory, { recursive: true, force: true })
})

/** An export with one document. */
function users(): Uint8Array {
  const shape = '{"_creationTime": normalfloat64, "_id": id<10001>, "name": string}'
  const documents = [[convexId(USERS, 1), { _creationTime: 1, name: 'ana' }] as const]
  return convexExport([{ name: 'users', number: USERS, shape, documents }], [])
}

test('the examples of the commands succeed', async () => {
  const { commands } = await readDocument(CLI_RUN, await machine.open())
  expect(commands.length).toBeGreaterThan(100)
})
