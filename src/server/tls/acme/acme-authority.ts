/**
 * Orders a certificate from an authority by ACME (RFC 8555) with HTTP-01 challenges. This module
 * loads the library, so it is itself loaded with the first order.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Authorization, axios, Client, crypto, type Order } from 'acme-client'
import type { AcmeSettings } from '../../../settings/acme.ts'
import type { System } from '../../../system/system.ts'
import type { Secret } from '../../../value/secret.ts'
import { AcmeFailure, problemText } from './acme-failure.ts'
import { newKey } from './acme-files.ts'
import { AcmeTransport } from './acme-transport.ts'
import type { Challenges } from './challenge-listener.ts'

/** Pauses between two looks at what the authority does; each is longer, up to the last one. */
const POLL_MILLIS = [250, 500, 1_000, 2_000, 4_000, 8_000] as const

export interface OrderOptions {
  readonly settings: AcmeSettings
  readonly system: Pick<System, 'nowMillis'>
  readonly accountKey: Secret
  readonly challenges: Challenges
  /** Ends the order. */
  readonly signal: AbortSignal
  /** Called before the request that creates the order: from then on it may count there. */
  readonly onOrder: () => void
}

export interface IssuedCertificate {
  /** PEM: the certificate, then those of its issuers. */
  readonly chain: string
  readonly key: Secret
}

export type OrderCertificate = (options: OrderOptions) => Promise<IssuedCertificate>

/** Throws AcmeFailure, and errors of the library. */
export const orderCertificate: OrderCertificate = async (options) => {
  const { settings, system, accountKey, challenges, signal, onOrder } = options
  useTransport(new AcmeTransport({ ...settings, system, signal }))
  const { directoryUrl, domains, email } = settings
  const client = new Client({ directoryUrl, accountKey: accountKey.reveal() })
  // Finds the account of the key, or makes it. Authorities reject an update without a contact.
  const contact = email === null ? [] : [`mailto:${email}`]
  await client.createAccount({ termsOfServiceAgreed: true, contact })
  const identifiers = domains.map((value) => ({ type: 'dns', value }))
  // The library signs a request before it sends it, so a stop until then has ordered nothing.
  signal.throwIfAborted()
  onOrder()
  const order = await client.createOrder({ identifiers })
  const published: string[] = []
  try {
    for (const authorization of await client.getAuthorizations(order)) {
      if (authorization.status === 'valid') continue
      published.push(await answer(client, authorization, challenges))
    }
    await poll(signal, async () => isAuthorized(await client.getAuthorizations(order)))
    await poll(signal, async () => isAt(await client.getOrder(order), ['ready', 'valid']))
  } finally {
    for (const token of published) challenges.withdraw(token)
  }
  const key = newKey()
  const [, request] = await crypto.createCsr({ altNames: [...domains] }, key.reveal())
  await client.finalizeOrder(order, request)
  let done = order
  await poll(signal, async () => {
    done = await client.getOrder(order)
    return isAt(done, ['valid'])
  })
  return { chain: await client.getCertificate(done), key }
}

/** The library has one HTTP client for all orders, of which only one runs at a time. */
function useTransport(transport: AcmeTransport): void {
  axios.defaults.adapter = async (config) => {
    const { url = '', method = 'get', data } = config
    const body = typeof data === 'string' ? data : null
    const response = await transport.request({ url, method: method.toUpperCase(), body })
    const { status, headers, body: text } = response
    return { data: text, status, statusText: '', headers: { ...headers } as never, config }
  }
}

/** Publishes the answer to the challenge, and has the authority look. Returns the token. */
async function answer(
  client: Client,
  { challenges: offered, identifier }: Authorization,
  challenges: Challenges,
): Promise<string> {
  const challenge = offered.find(({ type }) => type === 'http-01')
  if (challenge === undefined) {
    throw new AcmeFailure(`${identifier.value}: the authority offers no HTTP-01 challenge`)
  }
  challenges.publish(challenge.token, await client.getChallengeKeyAuthorization(challenge))
  try {
    await client.completeChallenge(challenge)
  } catch (error) {
    challenges.withdraw(challenge.token)
    throw error
  }
  return challenge.token
}

/** Throws AcmeFailure with the reason of the authority. */
function isAuthorized(all: readonly Authorization[]): boolean {
  for (const { identifier, status, challenges } of all) {
    if (status === 'valid' || status === 'pending') continue
    const failed = challenges.find(({ error }) => error !== undefined)
    throw new AcmeFailure(`${identifier.value}: ${problemText(failed?.error ?? { type: status })}`)
  }
  return all.every(({ status }) => status === 'valid')
}

function isAt(order: Order, statuses: readonly Order['status'][]): boolean {
  if (order.status === 'invalid') throw new AcmeFailure(problemText(order.error))
  return statuses.includes(order.status)
}

async function poll(signal: AbortSignal, isDone: () => Promise<boolean>): Promise<void> {
  for (let looks = 0; !(await isDone()); looks++) {
    const pause = POLL_MILLIS[Math.min(looks, POLL_MILLIS.length - 1)]
    await sleep(pause, undefined, { signal }).catch((cause) => {
      throw new AcmeFailure('the order did not end in time', { cause })
    })
  }
}
