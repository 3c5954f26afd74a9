/** Measures live lists: their patches beside whole states. */

import { realtimeProtocol } from '../../src/wire/realtime.ts'
import { call, int64, mutationBody, TEXTS } from '../calls.ts'
import { type Figure, inTurns, type Measured, type MeasureOptions, median } from '../figure.ts'
import type { BenchInstallation, Target } from '../installation.ts'
import { listMessages, listSubscribers, type Subscribers } from '../live/subscribers.ts'
import { toLoadResult, WARM_UP_SHARE } from '../load.ts'
import { serverCpuMillis } from '../server-processes.ts'

const SUBSCRIBERS = 1_000
const LISTED = 50
const BYTES_MAX = 1_024
/** Changes of which the bytes are measured. */
const CHANGES = 20
/** Time from one change to the next where CPU time is measured. */
const PERIOD_MILLIS = 100
/** Version 2 watches one list and version 1 another, so that each changes alone. */
const LISTS = { patches: { list: 2, version: 2 }, states: { list: 1, version: 1 } } as const

export const LIVE_LISTS: readonly Figure[] = [
  {
    name: `bytes of a change of a list of ${LISTED}`,
    baseline: `a limit of ${BYTES_MAX} B`,
    ratioMin: 1,
    documents: 'sqlite',
    measure: measureBytes,
  },
  {
    name: `patch to the last of ${SUBSCRIBERS}, p99`,
    baseline: 'the whole list',
    ratioMin: 1,
    documents: 'sqlite',
    measure: measureLast,
  },
  {
    name: `CPU of a patch to each of ${SUBSCRIBERS}`,
    baseline: 'the whole list',
    ratioMin: 2,
    documents: 'sqlite',
    measure: measureCpu,
  },
]

let next = 0
/** Adds entries to a list, whose oldest ones leave the newest fifty. */
function add(to: Target, list: number, count = 1): Promise<unknown> {
  const [from, end] = [next, next + count]
  next = end
  const range = { list: int64(list), from: int64(from), to: int64(end) }
  return call(to, '/v1/mutation', mutationBody('lists.add', { ...range, ...TEXTS }))
}

async function measureBytes({ application: to }: BenchInstallation): Promise<Measured> {
  const { list, version } = LISTS.patches
  await add(to, list, LISTED)
  const address = `ws://127.0.0.1:${to.port}/v1/realtime`
  const socket = new WebSocket(address, [realtimeProtocol(version)])
  const sizes: number[] = []
  let onMessage: () => void = () => undefined
  socket.onmessage = ({ data }) => {
    sizes.push(Buffer.byteLength(data as string))
    onMessage()
  }
  const received = (count: number) =>
    new Promise<void>((resolve) => {
      onMessage = () => sizes.length >= count && resolve()
      onMessage()
    })
  await new Promise((resolve, reject) => {
    socket.onopen = resolve
    socket.onerror = reject
  })
  for (const message of listMessages(to, { list, version })) socket.send(message)
  // The reply to the authentication, and the first state.
  await received(2)
  for (let i = 0; i < CHANGES; i++) {
    await add(to, list)
    await received(3 + i)
  }
  socket.close()
  const each = median(sizes.slice(2))
  const side = (bytes: number) => ({ value: `${bytes} B`, p50Micros: null, p99Micros: null })
  return {
    ratio: BYTES_MAX / each,
    candidate: side(each),
    baseline: side(BYTES_MAX),
    failure: null,
  }
}

/** Runs a measurement with the subscribers of both versions. */
async function withSubscribers<T>(
  to: Target,
  run: (subscribers: Readonly<Record<keyof typeof LISTS, Subscribers>>) => Promise<T>,
): Promise<T> {
  for (const { list } of Object.values(LISTS)) await add(to, list, LISTED)
  const patches = await listSubscribers(to, { clients: SUBSCRIBERS, ...LISTS.patches })
  const states = await listSubscribers(to, { clients: SUBSCRIBERS, ...LISTS.states })
  try {
    return await run({ patches, states })
  } finally {
    patches.stop()
    states.stop()
  }
}

function measureLast(
  { application: to }: BenchInstallation,
  options: MeasureOptions,
): Promise<Measured> {
  return withSubscribers(to, async (subscribers) => {
    const side = (name: keyof typeof LISTS) => async (seconds: number) => {
      const startedAt = performance.now()
      const countFrom = startedAt + seconds * 1000 * WARM_UP_SHARE
      const stopAt = startedAt + seconds * 1000
      const durations: number[] = []
      while (performance.now() < stopAt) {
        const sentAt = performance.now()
        await Promise.all([add(to, LISTS[name].list), subscribers[name].round()])
        if (performance.now() >= countFrom) durations.push(performance.now() - sentAt)
      }
      return toLoadResult(durations, (stopAt - countFrom) / 1000)
    }
    const sides = { candidate: side('patches'), baseline: side('states') }
    const measured = await inTurns(sides, options)
    const ratio = measured.baseline.p99Micros! / measured.candidate.p99Micros!
    return { ...measured, ratio }
  })
}

async function measureCpu(
  { application: to }: BenchInstallation,
  { seconds, rounds, warmUpSeconds }: MeasureOptions,
): Promise<Measured> {
  return withSubscribers(to, async (subscribers) => {
    /** Returns the microseconds of CPU time for a change and a subscriber. */
    const measure = async (name: keyof typeof LISTS, forSeconds: number): Promise<number> => {
      const changes = Math.ceil((forSeconds * 1000) / PERIOD_MILLIS)
      const before = serverCpuMillis()
      for (let i = 0; i < changes; i++) {
        const startedAt = performance.now()
        await Promise.all([add(to, LISTS[name].list), subscribers[name].round()])
        await Bun.sleep(Math.max(0, startedAt + PERIOD_MILLIS - performance.now()))
      }
      return ((serverCpuMillis() - before) * 1000) / changes / SUBSCRIBERS
    }
    const samples = { patches: [] as number[], states: [] as number[] }
    for (const name of ['patches', 'states'] as const) await measure(name, warmUpSeconds)
    for (let round = 0; round < rounds; round++) {
      for (const name of ['patches', 'states'] as const) {
        samples[name].push(await measure(name, seconds))
      }
    }
    const [patches, states] = [median(samples.patches), median(samples.states)]
    const side = (micros: number) => ({
      value: `${micros.toFixed(1)} us`,
      p50Micros: null,
      p99Micros: null,
    })
    return {
      ratio: states / patches,
      candidate: side(patches),
      baseline: side(states),
      failure: null,
    }
  })
}
