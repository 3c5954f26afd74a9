/** A hook of the first Workspace, by which another service writes messages into the channel. */
import { randomBytes } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { hmac } from '../../src/system/digests.ts'
import { mountPath } from '../../src/value/http/mounts.ts'

export const MOUNT = 'announcements'
export const SECRET = 'ANNOUNCEMENTS'

const HTTP = `/** Requests of other services: \`svc docs hooks\` is the guide. */
import { hook, httpRoutes, signature } from 'svc'
import { internal } from './_generated/api'

export default httpRoutes({
  announcements: hook({
    path: '/',
    verify: signature.github({ secret: '${SECRET}' }),
    handler: internal.announcements.onEvent,
  }),
})
`
const HANDLER = `import { type Id, internalMutation, v } from 'svc'

/** Writes the text of an event into its channel. */
export const onEvent = internalMutation({
  arguments: { delivery: v.httpDelivery() },
  handler: async (ctx, { delivery }) => {
    const { channel, body } = delivery.json as { channel: Id<'channels'>; body: string }
    if ((await ctx.db.get(channel)) === null) return
    await ctx.db.insert('messages', { channel, author: 'webhook', body, kind: 'text', likes: 0n })
  },
})
`

/** Adds the hook to a new Workspace. Returns the secret that it verifies with. */
export function addHook(workspace: string): string {
  mkdirSync(join(workspace, 'functions'), { recursive: true })
  writeFileSync(join(workspace, 'functions/announcements.ts'), HANDLER)
  writeFileSync(join(workspace, 'http.ts'), HTTP)
  return randomBytes(24).toString('base64url')
}

/** Returns a command that sends an event as the service does; each copy of it is the same event. */
export function hookCommand(application: string, secret: string, channelId: string): string {
  const event = JSON.stringify({ channel: channelId, body: 'Hello from another service' })
  const signature = `sha256=${hmac('sha256', secret, event).toString('hex')}`
  return [
    `curl -sS ${application}${mountPath(MOUNT)} -H 'Content-Type: application/json'`,
    `  -H 'X-Hub-Signature-256: ${signature}'`,
    `  -d '${event}'`,
  ].join(' \\\n')
}
