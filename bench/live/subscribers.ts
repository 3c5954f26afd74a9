/** Starts processes of WebSocket clients and waits for what they receive. */
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { type RealtimeVersion, realtimeProtocol } from '../../src/wire/realtime.ts'
import type { Tagged } from '../calls.ts'
import type { Target } from '../installation.ts'
import type { Plan } from './subscriber-process.ts'

const SCRIPT = join(import.meta.dirname, 'subscriber-process.ts')

export interface Subscribers {
  /** Waits for the end of the next round. */
  round(): Promise<void>
  stop(): void
}

/** Opens clients that receive one message each in a round, and send none. */
export function bareSubscribers(port: number, clients: number): Promise<Subscribers> {
  const url = `ws://127.0.0.1:${port}/`
  return start({ url, clients, messages: [], firstMessages: 0, roundMessages: clients })
}

/** Opens clients that subscribe to a Query of the number that `numberOf` returns. */
export function liveSubscribers(
  to: Target,
  {
    clients,
    number,
    roundMessages,
  }: {
    readonly clients: number
    /** A number for all, or that of each client. */
    readonly number: number | 'own'
    readonly roundMessages: number
  },
): Promise<Subscribers> {
  const value = number === 'own' ? '{i}' : String(number)
  return start({
    url: `ws://127.0.0.1:${to.port}/v1/realtime`,
    protocol: realtimeProtocol(1),
    clients,
    messages: [
      JSON.stringify({
        version: 1,
        type: 'authenticate',
        applicationKey: to.headers['x-service-key'],
      }),
      subscribeMessage({ nonce: '0', number: value }),
    ],
    // The reply to the authentication, and the first state.
    firstMessages: 2,
    roundMessages,
  })
}

/** Opens clients that subscribe to `lists.newest`, in version 2 with patches. */
export function listSubscribers(
  to: Target,
  {
    clients,
    list,
    version,
  }: { readonly clients: number; readonly list: number; readonly version: RealtimeVersion },
): Promise<Subscribers> {
  return start({
    url: `ws://127.0.0.1:${to.port}/v1/realtime`,
    protocol: realtimeProtocol(version),
    clients,
    messages: listMessages(to, { list, version }),
    firstMessages: 2,
    roundMessages: clients,
  })
}

/** Returns what a client of `lists.newest` sends. */
export function listMessages(
  to: Target,
  { list, version }: { readonly list: number; readonly version: RealtimeVersion },
): string[] {
  const value = [{ key: 'list', value: { type: 'int64', value: String(list) } }]
  return [
    { version, type: 'authenticate', applicationKey: to.headers['x-service-key'] },
    {
      version,
      type: 'subscribe',
      subscriptionId: 'one',
      target: 'channel:production',
      function: 'lists.newest',
      arguments: { type: 'object', value },
      ...(version === 2 && { patches: true }),
    },
  ].map((message) => JSON.stringify(message))
}

/** Returns a subscription to `live.get` with arguments of the type int64. */
export function subscribeMessage(entries: Readonly<Record<string, Tagged>>): string {
  const list = Object.entries(entries).map(([key, value]) => ({
    key,
    value: { type: 'int64', value },
  }))
  return JSON.stringify({
    version: 1,
    type: 'subscribe',
    subscriptionId: 'one',
    target: 'channel:production',
    function: 'live.get',
    arguments: { type: 'object', value: sorted(list) },
  })
}

const sorted = <T extends { readonly key: string }>(entries: readonly T[]) =>
  entries.toSorted((a, b) => (a.key < b.key ? -1 : 1))

async function start(plan: Plan): Promise<Subscribers> {
  const child: ChildProcessByStdio<null, Readable, null> = spawn(process.execPath, [SCRIPT], {
    env: { PLAN: JSON.stringify(plan) },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const round = async (): Promise<void> => {
    const { done } = await lines.next()
    if (done === true) throw new Error('the process of the subscribers has ended')
  }
  await round()
  return { round, stop: () => void child.kill() }
}
