/** Signed deliveries of events, as other services send them. */
import { setTimeout as delay } from 'node:timers/promises'
import { hmac } from '../../src/system/digests.ts'
import type { Json } from '../application.ts'
import type { HookedApplication } from './workspace.ts'

export const HOOKS = ['once', 'digest', 'action'] as const
export type Hook = (typeof HOOKS)[number]

export interface Event {
  readonly hook: Hook
  readonly id: string
}

export interface Answer {
  readonly status: number
  readonly body: Json
}

const RETRY_MILLIS = 100

/** Sends an event once; returns null if the server does not answer. */
export async function deliver(
  { app, path, secrets }: HookedApplication,
  event: Event,
): Promise<Answer | null> {
  const body = JSON.stringify({ id: event.id })
  try {
    const response = await fetch(`${app.server.application}${path}/${event.hook}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...signed(event, body, secrets) },
      body,
    })
    const text = await response.text()
    return { status: response.status, body: text === '' ? null : JSON.parse(text) }
  } catch {
    return null
  }
}

/** Sends an event until it is accepted, as services do; returns the ID of its delivery. */
export async function deliverUntilAccepted(
  application: HookedApplication,
  event: Event,
): Promise<string> {
  for (;;) {
    const answer = await deliver(application, event)
    if (answer !== null && isAccepted(answer)) return answer.body.deliveryId
    await delay(RETRY_MILLIS)
  }
}

/** Throws if the answer says that another attempt would not help. */
export function isAccepted({ status, body }: Answer): boolean {
  if (status === 202) return true
  if (status >= 500) return false
  throw new Error(`${status}: ${JSON.stringify(body)}`)
}

function signed(
  { hook, id }: Event,
  body: string,
  { STANDARD, GITHUB }: HookedApplication['secrets'],
): Record<string, string> {
  if (hook === 'digest') {
    const digest = hmac('sha256', Buffer.from(GITHUB), body).toString('hex')
    return { 'x-hub-signature-256': `sha256=${digest}` }
  }
  const time = String(Math.floor(Date.now() / 1_000))
  const key = Buffer.from(STANDARD.slice('whsec_'.length), 'base64')
  const signature = hmac('sha256', key, `${id}.${time}.${body}`).toString('base64')
  return { 'webhook-id': id, 'webhook-timestamp': time, 'webhook-signature': `v1,${signature}` }
}
