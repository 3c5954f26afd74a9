/**
 * Calls a server at a fixed rate, first without promotions and then while it promotes one Release
 * after the other. A process of its own, so that only its own load can delay its requests. Reads a
 * plan and prints a report.
 */
import { type LoadResult, toLoadResult } from '../load.ts'
import { PacedLoad, type PacedResponse } from './paced-load.ts'
import type { Plan, Report } from './plan.ts'
import { Promoter } from './promoter.ts'
import { wasServed } from './served.ts'
import { createCall, parseRelease, targetOf } from './versions.ts'

const WARM_UP_MILLIS = 1_000
/** Number of promotions per change of the serving policy. */
const PROMOTIONS_PER_POLICY = 10

async function run(plan: Plan): Promise<Report> {
  const { releases, promotions, everyMillis } = plan
  const promoter = new Promoter(plan)
  await promoter.promote(releases[0]!)
  await promoter.serve(releases[0]!)
  const load = new PacedLoad({
    ...plan.application,
    perSecond: plan.perSecond,
    request: createCall,
  })
  const quietFrom = performance.now() + WARM_UP_MILLIS
  const promotedFrom = quietFrom + plan.quietSeconds * 1_000
  await Bun.sleep(promotedFrom - performance.now())
  for (let number = 1; number <= promotions; number++) {
    await Bun.sleep(Math.max(0, promotedFrom + number * everyMillis - performance.now()))
    const releaseId = releases[number % releases.length]!
    await promoter.promote(releaseId)
    if (number % PROMOTIONS_PER_POLICY === 0) await promoter.serve(releaseId)
  }
  await Bun.sleep(everyMillis)
  const until = performance.now()
  const responses = await load.end()
  const within = (from: number, to: number) =>
    responses.filter(({ planned }) => planned >= from && planned < to)
  const promoted = within(promotedFrom, until)
  const promotionsOfAll = Object.values(promoter.promotions).flat()
  return {
    quiet: summarize(within(0, promotedFrom), {
      plan,
      promoter,
      from: quietFrom,
      to: promotedFrom,
    }),
    promoted: summarize(promoted, { plan, promoter, from: promotedFrom, to: until }),
    slowestMillis: Math.max(
      ...promotionsOfAll.slice(1).map(({ requestedAt, effectiveAt }) => effectiveAt - requestedAt),
    ),
    answers: releases.map(
      (_, release) => promoted.filter(({ text }) => parseRelease(text) === release).length,
    ),
  }
}

interface Window {
  readonly plan: Plan
  readonly promoter: Promoter
  /** Responses before this time are checked and not measured. */
  readonly from: number
  readonly to: number
}

function summarize(
  responses: readonly PacedResponse[],
  { plan, promoter, from, to }: Window,
): LoadResult {
  const reasons = responses.map((response) => failureOf(response, plan, promoter))
  const failures = reasons.filter((reason) => reason !== null)
  const timed = responses.filter(({ planned }) => planned >= from)
  return toLoadResult(
    timed.map(({ planned, received }) => received - planned),
    (to - from) / 1_000,
    { failures: failures.length, firstFailure: failures[0] ?? null },
  )
}

function failureOf(response: PacedResponse, { releases }: Plan, promoter: Promoter): string | null {
  const { number, sent, received, text } = response
  const release = parseRelease(text)
  if (release === null) return `the response to request ${number} was ${text}`
  const releaseId = releases[release]!
  const named = /\r\nx-service-release-id: (\S+)\r\n/i.exec(text)?.[1]
  if (named !== releaseId) return `the result is from ${releaseId}, the header names ${named}`
  const target = targetOf(number)
  if (wasServed(promoter.promotions[target], { releaseId, sent, received })) return null
  return `${target} did not serve ${releaseId} from ${sent} to ${received}, but returned its result`
}

const report = await run((await Bun.stdin.json()) as Plan)
process.stdout.write(JSON.stringify(report))
