/**
 * Goal: an attached `svc dev` continues from its own HEAD after lost requests and responses, and
 * never overwrites another developer. Method: the command over a real Product, whose responses are
 * lost; a script replaces the builds.
 */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { TestClient } from '../../../../testing/client/test-client.ts'
import { CHAT, Developers } from '../../../../testing/development/developers.ts'
import { makePackage } from '../../../../testing/products.ts'
import { isFault } from '../../../errors/fault.ts'
import type { SharedEnvironment } from '../../development/workspace-tools.ts'

const URL = 'https://dev.example.com'

let t: Developers
let client: TestClient
/** The state of the network: it delivers everything, or loses responses or requests. */
let network: 'up' | 'loses-responses' | 'loses-requests'
/** Methods of the requests that arrived. */
let arrived: string[]
beforeAll(async () => {
  t = await Developers.open()
})
afterAll(() => t.close())
beforeEach(() => {
  client = new TestClient()
  client.variables.SERVICE_DEVELOPMENT_KEY = t.key
  network = 'up'
  arrived = []
  client.fetch = async (url, init) => {
    if (network === 'loses-requests') throw new TypeError('the connection was lost')
    arrived.push(init.method!)
    const response = await t.gateway.application.fetch(new Request(url, init))
    if (network === 'loses-responses') throw new TypeError('the connection was lost')
    return response
  }
})
afterEach(() => {
  client[Symbol.dispose]()
  t.reset()
})

const build = (workspace: string, source: string) => ({
  workspace,
  frame: makePackage({ ...CHAT, workspace, source }),
  startedAt: 0,
  warnings: [],
})

/** Runs the command; `script` saves what it will. Returns the events. */
async function develop(
  script: (shared: SharedEnvironment) => Promise<void>,
  ...options: readonly string[]
) {
  client.tools = { attach: ({ shared }) => script(shared) }
  const ran = await client.run('dev', '--attach', URL, '--json', ...options)
  expect(ran, ran.out).toMatchObject({ exit: 0 })
  return ran.out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
}

async function codeOf(work: Promise<unknown>): Promise<string> {
  const error: unknown = await work.then(
    () => null,
    (failure) => failure,
  )
  return isFault(error) ? error.code : String(error)
}

const LOSSES = ['loses-responses', 'loses-requests'] as const

test.each(LOSSES)('a network that %s delays a save and conflicts with nothing', async (loss) => {
  const { workspace } = t.unused()
  const events = await develop(async (shared) => {
    await shared.projectOf(workspace)
    await shared.synchronize(build(workspace, 'one'))
    network = loss
    const lost = shared.synchronize(build(workspace, 'two'))
    expect(await codeOf(lost)).toBe('CLIENT_SERVER_UNREACHABLE')
    network = 'up'
    await shared.synchronize(build(workspace, 'three'))
  })
  expect(events.map(({ event }) => event)).toEqual(['attached', 'synchronized', 'synchronized'])
  expect((await t.headOf(workspace))?.revisionId).toBe(events.at(-1).revisionId)
})

test('a response is lost, and another developer follows: the next save conflicts', async () => {
  const { workspace } = t.unused()
  await develop(async (shared) => {
    await shared.projectOf(workspace)
    await shared.synchronize(build(workspace, 'one'))
    network = 'loses-responses'
    await codeOf(shared.synchronize(build(workspace, 'two')))
    network = 'up'
    const head = await t.headOf(workspace)
    await t.put(head!.revisionId, { ...CHAT, workspace, source: 'of another' })
    const next = codeOf(shared.synchronize(build(workspace, 'three')))
    expect(await next).toBe('PRODUCT_CAS_CONFLICT')
  })
})

test('a save that changes no byte of the package sends nothing', async () => {
  const { workspace } = t.unused()
  const save = async (shared: SharedEnvironment) => {
    await shared.projectOf(workspace)
    await shared.synchronize(build(workspace, 'same'))
    await shared.synchronize(build(workspace, 'same'))
  }
  await develop(save)
  expect(arrived).toEqual(['GET', 'PUT'])
  // Another start finds what it would send.
  const events = await develop(save)
  expect(arrived).toEqual(['GET', 'PUT', 'GET'])
  expect(events.map(({ event }) => event)).toEqual(['attached', 'synchronized'])
})

test('--freeze reports failed checks as a mistake of the source', async () => {
  const { workspace } = t.unused()
  t.describeAs([])
  const events = await develop(async (shared) => {
    await shared.projectOf(workspace)
    const rejected = await shared.synchronize(build(workspace, 'one')).catch((error) => error)
    expect([await codeOf(Promise.reject(rejected)), shared.isOfSource(rejected)]).toEqual([
      'PRODUCT_INCOMPATIBLE',
      true,
    ])
    expect(rejected.violations).toMatchObject([{ path: 'checks.code:functions' }])
    t.reset()
    await shared.synchronize(build(workspace, 'two'))
  }, '--freeze')
  expect(events.map(({ state }) => state)).toEqual([undefined, 'rejected', 'validated'])
})

test('what is no development key is rejected, and never shown', async () => {
  client.variables.SERVICE_DEVELOPMENT_KEY = t.gateway.key
  for (const line of [
    ['dev', '--attach', URL],
    ['freeze', 'chat', '--url', URL],
    ['dev', '--attach', URL, '--reset'],
    ['dev', '--root', 'root', '--freeze'],
    ['dev'],
    ['freeze', 'Chat', '--url', URL],
  ]) {
    const { exit, out, err } = await client.run(...line)
    expect([line, exit]).toEqual([line, 2])
    expect(out + err).not.toContain(t.gateway.key)
  }
  expect(arrived).toEqual([])
})
