/** Attacks with the abilities that only Actions have: timers and the network. */
import { action, v } from 'svc'
import { attemptLater } from '../attempts'

const clients = ['confidential'] as const
const fresh = { nonce: v.int64() }
const returns = v.any()

type Handler = (ctx: never, input: { nonce: bigint }) => unknown

const plain = (handler: Handler) => action({ clients, arguments: fresh, returns, handler })

/** Creates an Action for hosts that lead to the server's own machine or its cloud's credentials. */
const inward = (network: readonly string[], handler: Handler) =>
  action({ clients, arguments: fresh, returns, uses: { network }, handler })

/** Starts more timers than an Action may have. */
export const floodsTimers = plain(() => {
  for (;;) setTimeout(() => {}, 600_000)
})

/** Starts two timers in every timer, like a fork bomb. */
export const multipliesTimers = plain(async () => {
  const bomb = (): void => {
    setTimeout(bomb, 0)
    setTimeout(bomb, 0)
  }
  bomb()
  await new Promise(() => {})
})

/** Leaves an interval active, which must end with its Action. */
export const leavesIntervals = plain(() => {
  setInterval(() => {
    for (;;);
  }, 1)
  return 'stopped'
})

/** Leaves requests running after the result. */
export const leavesRequests = inward(['localhost'], () => {
  for (let i = 0; i < 4; i++) fetch('http://localhost/').catch(() => {})
  return 'stopped'
})

/** Fetches the server itself, under names of this machine. */
export const fetchesLoopback = inward(['localhost', 'localhost.localdomain'], () =>
  attemptLater(async () => {
    for (const url of [
      'http://localhost/',
      'http://localhost.localdomain/',
      'https://localhost/',
    ]) {
      try {
        return await fetch(url)
      } catch {}
    }
    return null
  }),
)

/** Fetches the server itself by its address, in every notation. */
export const fetchesNumbers = inward(['localhost'], () =>
  attemptLater(async () => {
    const hosts = [
      '127.0.0.1',
      '127.1',
      '2130706433',
      '0x7f000001',
      '0',
      '[::1]',
      '[::ffff:7f00:1]',
    ]
    for (const host of hosts) {
      try {
        return await fetch(`http://${host}/`)
      } catch {}
    }
    return null
  }),
)

/** Fetches the metadata service of a cloud, which gives credentials to any caller inside. */
export const fetchesMetadata = inward(['metadata.google.internal'], () =>
  attemptLater(async () => {
    for (const host of ['169.254.169.254', '[fd00:ec2::254]', 'metadata.google.internal']) {
      try {
        return await fetch(`http://${host}/latest/meta-data/`)
      } catch {}
    }
    return null
  }),
)

/** Fetches a host that the Action does not declare, and by other protocols than HTTP. */
export const fetchesElsewhere = plain(() =>
  attemptLater(async () => {
    for (const url of [
      'https://example.com/',
      'file:///etc/passwd',
      'data:text/plain,x',
      'ftp://x/',
    ]) {
      try {
        return await fetch(url)
      } catch {}
    }
    return null
  }),
)

/** Sends requests endlessly. Each is rejected, and their number is bounded. */
export const floodsRequests = plain(async () => {
  for (;;) await fetch('https://example.com/').catch(() => {})
})

/** Reads a secret that the Action does not declare. */
export const readsSecrets = action({
  clients,
  arguments: fresh,
  returns,
  handler: (ctx) =>
    attemptLater(async () =>
      (ctx as unknown as { config: { secret(name: string): Promise<unknown> } }).config.secret(
        'KEY',
      ),
    ),
})

/** Exhausts memory, which is bounded for Actions too. */
export const keepsObjects = plain(async () => {
  const kept: unknown[] = []
  for (;;) kept.push({ kept })
})
