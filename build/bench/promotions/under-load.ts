/**
 * A process of its own, so that nothing but its load keeps it from its times: calls a server at a
 * fixed rate, first in quiet and then while it promotes one Release after the other. Reads a plan
 * and prints a report.
 */
import { type LoadResult, resultOf } from '../load.ts'
import { Mover } from './mover.ts'
import { isOfServed } from './moves.ts'
import { type PacedAnswer, PacedLoad } from './paced-load.ts'
import type { Plan, Report } from './plan.ts'
import { answeredBy, callOf, targetOf } from './versions.ts'

const WARM_UP_MILLIS = 1_000
/** One policy for so many promotions. */
const PROMOTIONS_PER_POLICY = 10

async function run(plan: Plan): Promise<Report> {
  const { releases, promotions, everyMillis } = plan
  const mover = new Mover(plan)
  await mover.promote(releases[0]!)
  await mover.serve(releases[0]!)
  const load = new PacedLoad({ ...plan.application, perSecond: plan.perSecond, request: callOf })
  const quietFrom = performance.now() + WARM_UP_MILLIS
  const promotedFrom = quietFrom + plan.quietSeconds * 1_000
  await Bun.sleep(promotedFrom - performance.now())
  for (let number = 1; number <= promotions; number++) {
    await Bun.sleep(Math.max(0, promotedFrom + number * everyMillis - performance.now()))
    const releaseId = releases[number % releases.length]!
    await mover.promote(releaseId)
    if (number % PROMOTIONS_PER_POLICY === 0) await mover.serve(releaseId)
  }
  await Bun.sleep(everyMillis)
  const until = performance.now()
  const answers = await load.end()
  const within = (from: number, to: number) =>
    answers.filter(({ planned }) => planned >= from && planned < to)
  const promoted = within(promotedFrom, until)
  const moves = Object.values(mover.moves).flat()
  return {
    quiet: judge(within(0, promotedFrom), { plan, mover, from: quietFrom, to: promotedFrom }),
    promoted: judge(promoted, { plan, mover, from: promotedFrom, to: until }),
    slowestMillis: Math.max(...moves.slice(1).map(({ asked, effective }) => effective - asked)),
    answers: releases.map(
      (_, release) => promoted.filter(({ text }) => answeredBy(text) === release).length,
    ),
  }
}

interface Window {
  readonly plan: Plan
  readonly mover: Mover
  /** What comes before is judged and not timed. */
  readonly from: number
  readonly to: number
}

function judge(answers: readonly PacedAnswer[], { plan, mover, from, to }: Window): LoadResult {
  const reasons = answers.map((answer) => failureOf(answer, plan, mover))
  const failures = reasons.filter((reason) => reason !== null)
  const timed = answers.filter(({ planned }) => planned >= from)
  return resultOf(
    timed.map(({ planned, received }) => received - planned),
    (to - from) / 1_000,
    { failures: failures.length, firstFailure: failures[0] ?? null },
  )
}

function failureOf(answer: PacedAnswer, { releases }: Plan, mover: Mover): string | null {
  const { number, sent, received, text } = answer
  const release = answeredBy(text)
  if (release === null) return `the answer to ${number} was ${text}`
  const releaseId = releases[release]!
  const named = /\r\nx-service-release-id: (\S+)\r\n/i.exec(text)?.[1]
  if (named !== releaseId) return `the result is of ${releaseId} and the header names ${named}`
  const target = targetOf(number)
  if (isOfServed(mover.moves[target], { releaseId, sent, received })) return null
  return `${target} answered from ${releaseId} from ${sent} to ${received}, which it did not serve`
}

const report = await run((await Bun.stdin.json()) as Plan)
process.stdout.write(JSON.stringify(report))
