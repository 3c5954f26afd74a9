/**
 * Realtime, metrics, health and the shutdown of a server with two application processes.
 *
 * @module-tag slow
 */
import { writeFileSync } from 'node:fs'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  type Application,
  action,
  application,
  createKey,
  int64,
  type Json,
  object,
} from '../application.ts'
import { argv } from '../argv.ts'
import { readDescendants } from '../hostile/machine.ts'
import { Management } from '../lifecycle/management.ts'
import { MessageSocket } from '../live-states/message-socket.ts'
import { acceptedBy, connectToAll, isRunning, processesOf } from './processes.ts'
import { writeRelease } from './workspace.ts'

const SUBSCRIBERS = 2
const MUTATIONS = 20

let app: Application
let key: string
/** An external server, whose response to an Action the test sends. */
let outside: Server
const held: ServerResponse[] = []

const waiting = (port: number) => `
  import { action, v } from 'svc'

  export const wait = action({
    clients: ['confidential'],
    uses: { network: ['localhost:${port}'] },
    returns: v.string(),
    handler: async () => (await fetch('http://localhost:${port}/')).text(),
  })
`

beforeAll(async () => {
  outside = createServer((_, response) => held.push(response))
  await new Promise<void>((resolve) => outside.listen(0, 'localhost', resolve))
  app = await application(
    (workspace) => {
      writeRelease(workspace, 1)
      writeFileSync(join(workspace, 'functions/waiting.ts'), waiting(outsidePort()))
    },
    {
      SERVICE_APPLICATION_PROCESSES: '2',
      SERVICE_MEMORY_TARGET: '768',
      SERVICE_ACTION_ALLOWED_NETWORKS: '127.0.0.0/8,::1/128',
    },
  )
  ;({ key } = await createKey(app, {}))
})
afterAll(async () => {
  outside.closeAllConnections()
  outside.close()
  await app?.installation.dispose()
})

const outsidePort = () => (outside.address() as AddressInfo).port
const remote = () => argv`--remote --root ${app.installation.productRoot}`
const input = { number: int64(1) }

interface Subscriber {
  readonly socket: MessageSocket
  readonly messages: Json[]
  readonly pid: number
}

/** Opens subscribers of the counter until each process has accepted some of them. */
async function subscribeEverywhere(): Promise<Subscriber[]> {
  const { applications } = processesOf(app)
  const origin = app.server.application!
  const found: Subscriber[] = []
  while (
    applications.some((pid) => found.filter((each) => each.pid === pid).length < SUBSCRIBERS)
  ) {
    const messages: Json[] = []
    const socket = new MessageSocket(origin, {
      onMessage: (text) => messages.push(JSON.parse(text)),
      onClosed: () => messages.push({ type: 'closed' }),
    })
    socket.send({ type: 'authenticate', applicationKey: key })
    socket.send({
      type: 'subscribe',
      subscriptionId: 'counter',
      target: 'channel:production',
      function: 'seen.read',
      arguments: object(input),
    })
    await expect.poll(() => messages.map(({ type }) => type)).toContain('state')
    found.push({ socket, messages, pid: acceptedBy(applications, origin, socket.localPort)! })
  }
  return found
}

const states = ({ messages }: Subscriber): number[] =>
  messages.filter(({ type }) => type === 'state').map(({ result }) => Number(result.value))

test('subscribers of every process get the state after each Mutation of any process', async () => {
  const subscribers = await subscribeEverywhere()
  const writers = await connectToAll(app, 1)
  for (let value = 1; value <= MUTATIONS; value++) {
    const { connection } = writers[value % writers.length]!
    const call = { kind: 'mutation', function: 'seen.add', arguments: input, key } as const
    expect((await connection.call(call)).status).toBe(200)
    await expect
      .poll(() => subscribers.map((each) => states(each).at(-1)), { interval: 1 })
      .toEqual(subscribers.map(() => value))
  }
  const everyState = Array.from({ length: MUTATIONS + 1 }, (_, value) => value)
  for (const subscriber of subscribers) expect(states(subscriber)).toEqual(everyState)
  for (const { socket } of subscribers) socket.cut()
  for (const { connection } of writers) connection.close()
})

/** Binds the Channel. Resolves once the management origin answers that the Channel serves it. */
async function promote(releaseId: string): Promise<void> {
  const management = new Management(app)
  const send = async (method: string, path: string, body?: Json) => {
    const { reply } = await management.attempt(method, path, body === undefined ? {} : { body })
    expect(reply?.status, reply?.text).toBe(200)
    return JSON.parse(reply!.text)
  }
  const { serving } = await send('PUT', '/channels/production', { releaseId })
  if (serving === 'converged') return
  while ((await send('GET', '')).observed.serving !== 'serving') await Bun.sleep(1)
}

test('a promotion is visible in a process whose runners have ended', async () => {
  const { workspace } = app.installation
  writeRelease(workspace, 2)
  writeFileSync(join(workspace, 'functions/waiting.ts'), waiting(outsidePort()))
  const first = app.releaseId
  const second = (await app.svc(argv`release --no-typecheck ${remote()}`)).releaseId
  const connections = await connectToAll(app, 2)
  const seen = () =>
    Promise.all(
      connections.map(async ({ connection }) => {
        const call = { kind: 'query', function: 'seen.release', key } as const
        return (await connection.call(call)).body
      }),
    )
  for (const [releaseId, number] of [
    [second, 2],
    [first, 1],
    [second, 2],
  ] as const) {
    const [, process2] = processesOf(app).applications
    for (const { pid } of readDescendants(process2!)) process.kill(pid, 'SIGKILL')
    await promote(releaseId)
    const expected = connections.map(() => ({ result: int64(number) }))
    expect(await seen()).toMatchObject(expected)
  }
  await promote(first)
  for (const { connection } of connections) connection.close()
})

test('metrics and health add up what all processes report, and never decrease', async () => {
  const metrics = () => app.svc(argv`metrics ${remote()}`)
  const subscribers = await subscribeEverywhere()
  const connections = await connectToAll(app, 1)
  const callsOfRead = async () => {
    const stats = argv`functions stats --target channel:production ${remote()}`
    const { functions } = await app.svc(stats)
    return Number(functions.find((each: Json) => each.name === 'seen.read')?.calls ?? 0)
  }
  const callsBefore = await callsOfRead()
  const before = await metrics()
  for (const { connection } of connections) {
    const call = { kind: 'query', function: 'seen.read', arguments: input, key } as const
    for (let i = 0; i < 5; i++) expect((await connection.call(call)).status).toBe(200)
  }
  const grown = async (name: string) =>
    Number((await metrics()).counters[name]) - Number(before.counters[name])
  // At once: a reader of metrics need not wait until each process has reported.
  expect(await grown('queriesSucceeded')).toBe(5 * connections.length)
  expect(Number((await metrics()).gauges.realtimeConnections)).toBe(subscribers.length)
  expect((await callsOfRead()) - callsBefore).toBe(5 * connections.length)
  const { counters } = await metrics()
  const { components } = await app.svc(argv`health ${remote()}`)
  expect(components).toContainEqual({ name: 'realtime', status: 'healthy' })
  const [victim] = connections
  process.kill(victim!.pid, 'SIGKILL')
  await expect.poll(() => processesOf(app).applications).not.toContain(victim!.pid)
  await expect.poll(() => processesOf(app).applications.length).toBe(2)
  const after = (await metrics()).counters
  for (const [name, value] of Object.entries(counters)) {
    expect(Number(after[name]), name).toBeGreaterThanOrEqual(Number(value))
  }
  for (const { socket } of subscribers) socket.cut()
  for (const { connection } of connections) connection.close()
})

test('the main process and two application processes divide the memory target', async () => {
  const target = async () =>
    Number((await app.svc(argv`metrics ${remote()}`)).gauges.memoryTargetBytes)
  // A process that replaces another one reports once it is ready.
  await expect.poll(target, { timeout: 60_000 }).toBe(768 * 1024 * 1024)
})

test('a stop answers what is in flight, and leaves no process', async () => {
  const { server } = app
  const connections = await connectToAll(app, 1)
  const [subscriber] = await subscribeEverywhere()
  const actions = connections.map(() => action(app, { function: 'waiting.wait' }))
  await expect.poll(() => held.length).toBe(actions.length)
  const { main, descendants } = processesOf(app)
  const stopping = server.stop()
  await expect.poll(() => subscriber!.messages.map(({ type }) => type)).toContain('reconnect')
  for (const response of held) response.end('answered')
  for (const { status, body } of await Promise.all(actions)) {
    expect([status, body.result]).toEqual([200, { type: 'string', value: 'answered' }])
  }
  expect(await stopping).toBe(0)
  expect([main, ...descendants].filter(isRunning)).toEqual([])
})
