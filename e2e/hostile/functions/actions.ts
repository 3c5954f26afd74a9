/** What Actions have beyond the others, timers and the network, turned against the server. */
import { action, v } from 'svc'
import { attemptLater } from '../attempts'

const clients = ['confidential'] as const
const fresh = { nonce: v.int64() }
const returns = v.any()

type Handler = (ctx: never, input: { nonce: bigint }) => unknown

const plain = (handler: Handler) => action({ clients, arguments: fresh, returns, handler })

/** Of these hosts each leads back to the server's own machine, or to its cloud's secrets. */
const inward = (network: readonly string[], handler: Handler) =>
  action({ clients, arguments: fresh, returns, uses: { network }, handler })

/** More timers than an Action may have. */
export const floodsTimers = plain(() => {
  for (;;) setTimeout(() => {}, 600_000)
})

/** A timer for every timer: the wall that a fork bomb meets here. */
export const multipliesTimers = plain(async () => {
  const bomb = (): void => {
    setTimeout(bomb, 0)
    setTimeout(bomb, 0)
  }
  bomb()
  await new Promise(() => {})
})

/** An interval that its Action left behind: it ends with the Action. */
export const leavesIntervals = plain(() => {
  setInterval(() => {
    for (;;);
  }, 1)
  return 'stopped'
})

/** Work that goes on behind the answer. */
export const leavesRequests = inward(['localhost'], () => {
  for (let i = 0; i < 4; i++) fetch('http://localhost/').catch(() => {})
  return 'stopped'
})

/** The server itself, under names of this machine. */
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

/** The same by number, in every way of writing one. */
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

/** The metadata service of a cloud, which gives credentials to whoever asks from the inside. */
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

/** A host that the Action does not name, and other ways than HTTP. */
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

/** Requests without end: each is refused, and their number is bounded. */
export const floodsRequests = plain(async () => {
  for (;;) await fetch('https://example.com/').catch(() => {})
})

/** A secret that the Action does not name. */
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

/** Memory is an Action's bound too. */
export const keepsObjects = plain(async () => {
  const kept: unknown[] = []
  for (;;) kept.push({ kept })
})
