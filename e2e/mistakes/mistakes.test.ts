/**
 * Mistakes that people make, with exactly what they read: what happened, why, and what to do next.
 * The situations are tables; one server is shared, and its programs run a few at a time.
 *
 * @module-tag slow
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { argv } from '../argv.ts'
import type { Result } from '../harness.ts'
import { ARCHIVED } from './archived.ts'
import { CALLS } from './calls.ts'
import { COMMAND_LINES } from './command-lines.ts'
import { CONFIGURATION } from './configuration.ts'
import { type MistakeServer, openMistakeServer } from './mistake-server.ts'
import { OPERATORS } from './operators.ts'
import { RELEASES } from './releases.ts'
import { SERVERS } from './servers.ts'
import type { Situation } from './situations.ts'

/** Maximum number of programs that run at the same time. */
const PROGRAMS_MAX = 4

let server: MistakeServer
const results = new Map<Situation, Result>()

beforeAll(async () => {
  server = await openMistakeServer()
  const active = [COMMAND_LINES, OPERATORS, RELEASES, CONFIGURATION, CALLS, SERVERS].flat()
  await runAll(active)
  await server.app.svc(argv`environments archive --root ${server.app.installation.productRoot}`)
  await runAll(ARCHIVED)
})
afterAll(() => server?.dispose())

async function runAll(situations: readonly Situation[]): Promise<void> {
  const queue = [...situations]
  const work = async (): Promise<void> => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      results.set(next, await server.run(next))
    }
  }
  await Promise.all(Array.from({ length: PROGRAMS_MAX }, work))
}

describe.each([
  ['a command line', COMMAND_LINES],
  ['an operator', OPERATORS],
  ['a Release', RELEASES],
  ['the configuration', CONFIGURATION],
  ['a call', CALLS],
  ['a server', SERVERS],
  ['an archived Environment', ARCHIVED],
])('mistakes with %s', (_, situations) => {
  test.each(situations)('the output explains the mistake: $situation', (situation) => {
    const { status, stdout, stderr } = results.get(situation)!
    // A server that fails to start has logged before that its addresses are open.
    const printed = server.named(stderr).split('\n').slice(0, -1)
    const message = printed.filter((line) => !line.includes('"event":"server.listening"'))
    expect([status, message]).toEqual([situation.exit, situation.message])
    const lines = server.named(stdout).split('\n')
    if (situation.result !== undefined) expect(lines).toContain(situation.result)
  })
})
