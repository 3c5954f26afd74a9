/**
 * Sends events, each up to three times and in parallel, while the server is killed, and compares
 * the effects of the handlers with the answers.
 */
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { argv } from '../argv.ts'
import { SeededRandom } from '../serializability/random.ts'
import { deliver, deliverUntilAccepted, type Event, HOOKS, isAccepted } from './deliveries.ts'
import type { HookedApplication } from './workspace.ts'

export interface CampaignOptions {
  readonly seed: number
  readonly events: number
  /**
   * The kills of the server: a number of them at even distances of the workload, or one at the end
   * of each interval until the last event is accepted.
   */
  readonly kills: { readonly times: number } | { readonly everyMillis: number }
}

export interface Campaign {
  /** Each event with the delivery IDs of its answers, and whether it was sent until accepted. */
  readonly sent: readonly Sent[]
  readonly kills: number
  /** Requests that were not answered with 202: the server was down, or about to be. */
  readonly unanswered: number
  readonly millis: number
}

export interface Sent extends Event {
  readonly isInsistent: boolean
  readonly deliveryIds: string[]
}

const SENDERS = 32
const COPIES_MAX = 3
/** Share of the events whose service gives up after one request. */
const ONCE_SHARE = 0.05
/** Share of the events that go to the Action; the other hooks have the rest in equal parts. */
const ACTION_SHARE = 0.1
const POLL_MILLIS = 10

export async function runCampaign(
  application: HookedApplication,
  { seed, events, kills }: CampaignOptions,
): Promise<Campaign> {
  const sent = Array.from({ length: events }, (_, number) => eventOf(seed, number))
  const begun = performance.now()
  let [killed, unanswered, finished, next] = [0, 0, 0, 0]
  const send = async (event: Sent): Promise<void> => {
    const id = await (event.isInsistent ? deliverUntilAccepted : deliverOnce)(application, event)
    if (id === null) unanswered += 1
    else event.deliveryIds.push(id)
  }
  const sender = async (): Promise<void> => {
    for (;;) {
      const number = next++
      const event = sent[number]
      if (event === undefined) return
      const copies = 1 + new SeededRandom(seed, -1 - number).below(COPIES_MAX)
      await Promise.all(Array.from({ length: event.isInsistent ? copies : 1 }, () => send(event)))
      finished += 1
    }
  }
  const killer = async (): Promise<void> => {
    for (const isDue of deadlines(kills, events)) {
      while (finished < events && !isDue(finished)) await delay(POLL_MILLIS)
      if (finished >= events) return
      await application.app.restart('kill')
      killed += 1
    }
  }
  await Promise.all([killer(), ...Array.from({ length: SENDERS }, sender)])
  return { sent, kills: killed, unanswered, millis: performance.now() - begun }
}

/** Yields for each kill whether it is due, by the number of finished events. */
function* deadlines(
  kills: CampaignOptions['kills'],
  events: number,
): Generator<(finished: number) => boolean> {
  if ('times' in kills) {
    const distance = events / (kills.times + 1)
    for (let number = 1; number <= kills.times; number++) {
      yield (finished) => finished >= number * distance
    }
    return
  }
  for (;;) {
    const at = performance.now() + kills.everyMillis
    yield () => performance.now() >= at
  }
}

async function deliverOnce(application: HookedApplication, event: Event): Promise<string | null> {
  const answer = await deliver(application, event)
  return answer !== null && isAccepted(answer) ? answer.body.deliveryId : null
}

function eventOf(seed: number, number: number): Sent {
  const random = new SeededRandom(seed, number)
  const hook = random.chance(ACTION_SHARE) ? 'action' : random.pick(HOOKS.slice(0, 2))
  const id = `evt_${String(number).padStart(6, '0')}`
  return { hook, id, isInsistent: !random.chance(ONCE_SHARE), deliveryIds: [] }
}

/** Resolves once all scheduled work that the server knows of has ended. */
export async function untilHandled({ app }: HookedApplication): Promise<void> {
  const remote = argv`--remote --root ${app.installation.productRoot}`
  const unfinished = async () =>
    Number((await app.svc(argv`metrics ${remote}`)).gauges.scheduledUnfinished)
  while ((await unfinished()) > 0) await delay(POLL_MILLIS)
}

/** Returns how often a handler had its effect, by event. */
export async function effects({ app }: HookedApplication): Promise<ReadonlyMap<string, number>> {
  const { directory, productRoot } = app.installation
  const file = join(directory, `effects-${randomUUID()}.jsonl`)
  const where = argv`--remote --root ${productRoot} --target channel:production`
  await app.svc(argv`data export channels ${file} ${where}`)
  const counts = new Map<string, number>()
  for (const line of readFileSync(file, 'utf8').split('\n')) {
    if (line === '') continue
    const [id = ''] = JSON.parse(line).name.split(' ')
    counts.set(id, (counts.get(id) ?? 0) + 1)
  }
  return counts
}

/** Returns what contradicts the promise of a hook, one line for each event. */
export function contradictions(
  { sent }: Campaign,
  found: ReadonlyMap<string, number>,
): readonly string[] {
  const lines: string[] = []
  const firsts = new Map<string, string>()
  for (const { hook, id, deliveryIds, isInsistent } of sent) {
    const count = found.get(id) ?? 0
    const [first] = deliveryIds
    const about = `${hook} ${id}`
    if (first === undefined) {
      if (isInsistent) lines.push(`${about}: it was never accepted`)
    } else {
      if (deliveryIds.some((each) => each !== first)) lines.push(`${about}: ${deliveryIds}`)
      const other = firsts.get(first)
      if (other !== undefined) lines.push(`${about}: it has the delivery of ${other}`)
      firsts.set(first, id)
      if (count === 0) lines.push(`${about}: it was accepted and has no effect`)
    }
    // An Action runs again after a failure, so that it may have its effect more than once.
    if (count > 1 && hook !== 'action') lines.push(`${about}: ${count} effects`)
  }
  const known = new Set(sent.map(({ id }) => id))
  for (const id of found.keys()) if (!known.has(id)) lines.push(`${id}: it was never sent`)
  return lines
}
