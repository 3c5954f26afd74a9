/**
 * Slow and greedy clients in small size: half of the default budgets, and smaller attacks.
 *
 * @module-tag slow
 */
import { connect } from 'node:net'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { ANSWER_BYTES, attackOn, openTarget, type Target } from './attacks.ts'

const MIB = 1024 * 1024
const BUDGET_MIB = 128
/**
 * A server that was idle has returned memory, and takes it again beside the budget. Each attack
 * takes more than 600 MiB without a budget.
 */
const SLACK_MIB = 192
const TIMES = { quietSeconds: 0.5, seconds: 4 } as const

let target: Target
beforeAll(async () => {
  target = await openTarget({
    SERVICE_REQUEST_MEMORY_MIB: String(BUDGET_MIB),
    SERVICE_RESPONSE_MEMORY_MIB: String(BUDGET_MIB),
  })
})
afterAll(() => target?.app.installation.dispose())

test('unfinished bodies beyond their budget are rejected at once', async () => {
  const attack = { kind: 'bodies', connections: 300, bytes: 2 * MIB, ...TIMES } as const
  const { mibBefore, mibPeak, attack: report, attacked } = await attackOn(target, attack)
  expect(mibPeak - mibBefore).toBeLessThanOrEqual(BUDGET_MIB + SLACK_MIB)
  expect(report.statuses[503]).toBeGreaterThanOrEqual(200)
  expect(Object.keys(attacked.statuses)).toEqual(['200'])
})

test('responses that are not read are rejected at once beyond their budget', async () => {
  const attack = { kind: 'answers', connections: 100, bytes: ANSWER_BYTES, ...TIMES } as const
  const { mibBefore, mibPeak, attack: report, attacked } = await attackOn(target, attack)
  expect(mibPeak - mibBefore).toBeLessThanOrEqual(BUDGET_MIB + SLACK_MIB)
  expect(report.statuses[503]).toBeGreaterThanOrEqual(70)
  expect(Object.keys(attacked.statuses)).toEqual(['200'])
})

/** Sends a call without the last byte of its body. Returns the response. */
async function stoppedBody(length: number): Promise<string> {
  const { hostname, port } = new URL(target.app.server.application!)
  const socket = connect(Number(port), hostname)
  onTestFinished(() => void socket.destroy())
  const body = ' '.repeat(length - 1)
  socket.write(
    `POST /v1/query HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n` +
      `X-Service-Key: ${target.app.key}\r\nContent-Length: ${length}\r\n\r\n${body}`,
  )
  return new Promise((resolve, reject) => {
    socket.once('data', (chunk) => resolve(String(chunk)))
    socket.once('error', reject)
  })
}

test('unfinished bodies of any length are rejected with 503', async () => {
  for (const response of await Promise.all([10_000, 100_000].map(stoppedBody))) {
    expect(response).toMatch(/^HTTP\/1.1 503 /)
    expect(response).toMatch(/retry-after: 1/i)
    expect(response).toContain('"code":"BUSY"')
  }
})
