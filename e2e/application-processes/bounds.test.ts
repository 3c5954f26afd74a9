/**
 * Bounds on Realtime connections, over all processes together.
 *
 * @module-tag slow
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Application, application, createKey } from '../application.ts'
import { MessageSocket } from '../live-states/message-socket.ts'
import { acceptedBy, processesOf } from './processes.ts'
import { writeRelease } from './workspace.ts'

/** An odd number, which an even division over two processes would not reach. */
const PEER_MAX = 15
const CREDENTIAL_MAX = 9

let app: Application
let key: string

beforeAll(async () => {
  app = await application((workspace) => writeRelease(workspace, 1), {
    SERVICE_APPLICATION_PROCESSES: '2',
    SERVICE_REALTIME_CONNECTIONS_PER_PEER_MAX: String(PEER_MAX),
    SERVICE_REALTIME_CONNECTIONS_PER_CREDENTIAL_MAX: String(CREDENTIAL_MAX),
  })
  ;({ key } = await createKey(app, {}))
})
afterAll(() => app?.installation.dispose())

interface Client {
  readonly socket: MessageSocket
  state: 'pending' | 'open' | 'closed'
}

/** Opens a connection. Resolves once it is open, and authenticated with a key, or rejected. */
async function open(applicationKey: string | null): Promise<Client> {
  const client: Client = {
    socket: new MessageSocket(app.server.application!, {
      onMessage: (text) => {
        if (JSON.parse(text).type === 'authenticated') client.state = 'open'
      },
      onClosed: () => {
        client.state = 'closed'
      },
      onUpgraded: () => {
        if (applicationKey === null) client.state = 'open'
      },
    }),
    state: 'pending',
  }
  if (applicationKey !== null) client.socket.send({ type: 'authenticate', applicationKey })
  await expect.poll(() => client.state, { interval: 1 }).not.toBe('pending')
  return client
}

async function openAll(count: number, applicationKey: string | null): Promise<Client[]> {
  const clients: Client[] = []
  for (let i = 0; i < count; i++) clients.push(await open(applicationKey))
  return clients
}

const opened = (clients: readonly Client[]) => clients.filter(({ state }) => state === 'open')

test('an address has exactly its connections, however they are spread', async () => {
  const clients = await openAll(PEER_MAX + 5, null)
  expect(opened(clients)).toHaveLength(PEER_MAX)
  // The connections of a process that is killed count no longer.
  const { applications } = processesOf(app)
  const [victim] = opened(clients)
  const pid = acceptedBy(applications, app.server.application!, victim!.socket.localPort)!
  process.kill(pid, 'SIGKILL')
  await expect.poll(() => processesOf(app).applications).not.toContain(pid)
  await expect.poll(() => processesOf(app).applications.length).toBe(2)
  await expect.poll(() => victim!.state).toBe('closed')
  const held = opened(clients)
  expect(held.length).toBeLessThan(PEER_MAX)
  while (held.length < PEER_MAX) held.push(...opened(await openAll(1, null)))
  expect(opened(await openAll(5, null))).toEqual([])
  for (const { socket } of held) socket.cut()
})

test('a key has exactly its connections, however they are spread', async () => {
  // The server notices within a moment that the connections of the other test were closed.
  await expect
    .poll(async () => {
      const clients = await openAll(CREDENTIAL_MAX + 3, key)
      const { length } = opened(clients)
      for (const { socket } of clients) socket.cut()
      return length
    })
    .toBe(CREDENTIAL_MAX)
})
