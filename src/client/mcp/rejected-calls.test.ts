import { mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { TestClient } from '../../../testing/client/test-client.ts'
import { Fault } from '../../errors/fault.ts'
import { realSystem } from '../../system/system.ts'
import { Output } from '../output.ts'
import { REJECTED_CALLS_FILE, REJECTED_CALLS_MAX, RejectedCalls } from './rejected-calls.ts'

const system = realSystem()
const subject = {
  managementOrigin: 'https://svc.example.com',
  environmentId: system.ids.make('env'),
  sessionId: system.ids.make('ops'),
}
const fault = new Fault('CLIENT_TOOL_UNAVAILABLE', { detail: 'The session has no data:write.' })

let client: TestClient
let warnings: string[]
beforeEach(() => {
  client = new TestClient()
  warnings = []
})
afterEach(() => client[Symbol.dispose]())

function record(): RejectedCalls {
  const environment = client.environment({
    system,
    stderr: { isTTY: false, write: async (text) => void warnings.push(text) },
  })
  return new RejectedCalls({ environment, output: new Output(environment, { json: false }) })
}

const path = () => join(client.variables.SERVICE_CONFIG_HOME!, REJECTED_CALLS_FILE)
const toolsOf = async () => (await record().list()).map(({ tool }) => tool)

test('a rejected call is kept with its reason and session, for its user alone', async () => {
  const calls = record()
  calls.add('insertDocument', fault, subject)
  await calls.flush()
  expect(await record().list()).toMatchObject([
    { ...subject, tool: 'insertDocument', code: fault.code, reason: fault.detail },
  ])
  expect(statSync(path()).mode & 0o777).toBe(0o600)
  expect(statSync(dirname(path())).mode & 0o777).toBe(0o700)
})

test('calls are written without a flush', { tags: ['slow'] }, async () => {
  record().add('insertDocument', fault, subject)
  await expect.poll(toolsOf, { timeout: 120_000 }).toEqual(['insertDocument'])
})

test('the newest calls are kept, of all processes, and the file is bounded', async () => {
  const [first, second] = [record(), record()]
  for (let i = 0; i < REJECTED_CALLS_MAX; i += 1) first.add(`first${i}`, fault, subject)
  await Promise.all([first.flush(), first.flush()])
  second.add('second', fault, subject)
  await second.flush()
  const tools = await toolsOf()
  expect(tools).toHaveLength(REJECTED_CALLS_MAX)
  expect([tools[0], tools.at(-1)]).toEqual(['second', 'first1'])
})

test('a full record of the longest names and reasons, all of them escaped, is read', async () => {
  const calls = record()
  const hidden = '\u202e'.repeat(10_000)
  const longest = new Fault('CLIENT_TOOL_UNAVAILABLE', { detail: hidden })
  const host = `${'a'.repeat(63)}.`.repeat(4).slice(0, 253)
  const of = { ...subject, managementOrigin: `https://${host}:65535` }
  for (let i = 0; i < REJECTED_CALLS_MAX; i += 1) calls.add(hidden, longest, of)
  await calls.flush()
  expect(await record().list()).toHaveLength(REJECTED_CALLS_MAX)
  expect(warnings).toEqual([])
})

test('processes that write at the same time lose no call', async () => {
  const all = Array.from({ length: 5 }, () => record())
  for (const [i, each] of all.entries()) each.add(`call${i}`, fault, subject)
  await Promise.all(all.map((each) => each.flush()))
  expect((await toolsOf()).toSorted()).toEqual(all.map((_, i) => `call${i}`))
})

test('names of tools are cut, and control characters are escaped', async () => {
  const calls = record()
  calls.add(`\u001b[2J\u202e${'x'.repeat(10_000)}`, fault, subject)
  await calls.flush()
  const [tool = ''] = await toolsOf()
  expect(tool.length).toBeLessThan(200)
  expect(tool).toMatch(/^[\x20-\x7e]+$/)
})

test('a file of another form, or a link, stays, and the user is warned once', async () => {
  mkdirSync(dirname(path()), { recursive: true, mode: 0o700 })
  const elsewhere = join(client.home, 'elsewhere.json')
  writeFileSync(elsewhere, '{"version":1,"calls":[]}', { mode: 0o600 })
  for (const make of [
    () => writeFileSync(path(), '{"version":2}', { mode: 0o600 }),
    () => symlinkSync(elsewhere, path()),
  ]) {
    warnings = []
    make()
    const calls = record()
    for (let i = 0; i < 3; i += 1) {
      calls.add('insertDocument', fault, subject)
      await calls.flush()
    }
    expect(warnings).toEqual([expect.stringContaining('rejected calls are not recorded')])
    await expect(record().list()).rejects.toMatchObject({ code: 'CLIENT_FILE_FAILED' })
    rmSync(path())
  }
  expect(readFileSync(elsewhere, 'utf8')).toBe('{"version":1,"calls":[]}')
})
