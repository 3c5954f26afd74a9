/** The hooks of a campaign, and what their handlers leave in the documents. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Application, application } from '../application.ts'
import { argv } from '../argv.ts'
import type { Environment } from '../harness.ts'

const SECRETS = {
  /** Its key is what follows the prefix, in base64. */
  STANDARD: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  GITHUB: 'a secret of GitHub',
}

/** Each run of a handler adds a channel, so that a second run of one delivery would be seen. */
const FUNCTIONS = `
import { internalAction, internalMutation, v } from 'svc'
import { internal } from '../_generated/api'

const named = (id: string) => ({ name: id + ' ' + crypto.randomUUID() })
const idOf = (delivery: { json?: unknown }) => (delivery.json as { id: string }).id

export const onEvent = internalMutation({
  arguments: { delivery: v.httpDelivery() },
  handler: async (ctx, { delivery }) => {
    await ctx.db.insert('channels', named(idOf(delivery)))
  },
})
export const record = internalMutation({
  arguments: { id: v.string() },
  handler: async (ctx, { id }) => {
    await ctx.db.insert('channels', named(id))
  },
})
export const onCall = internalAction({
  arguments: { delivery: v.httpDelivery() },
  retry: {
    maximumAttempts: 100,
    backoff: { initial: { milliseconds: 1 }, maximum: { seconds: 1 } },
  },
  handler: async (ctx, { delivery }) => {
    if (Math.random() < 0.2) throw new Error('it failed before its effect')
    await ctx.runMutation(internal.hooks.record, { id: idOf(delivery) })
    if (Math.random() < 0.2) throw new Error('it failed after its effect')
  },
})
`

const HTTP = `
import { hook, httpRoutes, signature } from 'svc'
import { internal } from './_generated/api'

const standard = signature.standardWebhooks({ secret: 'STANDARD' })
const once = (delivery: { headers: Record<string, string> }) => delivery.headers['webhook-id'] ?? ''

export default httpRoutes({
  once: hook({ path: '/once', verify: standard, once, handler: internal.hooks.onEvent }),
  digest: hook({
    path: '/digest',
    verify: signature.github({ secret: 'GITHUB' }),
    handler: internal.hooks.onEvent,
  }),
  open: hook({
    path: '/open',
    verify: 'none',
    maximumBytes: 512 * 1024,
    handler: internal.hooks.onEvent,
  }),
  action: hook({ path: '/action', verify: standard, once, handler: internal.hooks.onCall }),
})
`

/** An application with a mount. */
export interface HookedApplication {
  readonly app: Application
  /** The path below which the hooks are. */
  readonly path: string
  /** The secrets that sign the deliveries. */
  readonly secrets: Readonly<Record<keyof typeof SECRETS, string>>
}

export function writeHooks(workspace: string): void {
  writeFileSync(join(workspace, 'functions/hooks.ts'), FUNCTIONS)
  writeFileSync(join(workspace, 'http.ts'), HTTP)
}

/** Serves the hooks below a mount whose rate no test reaches. */
export async function hookedApplication(environment: Environment = {}): Promise<HookedApplication> {
  const app = await application(writeHooks, environment)
  const remote = argv`--remote --root ${app.installation.productRoot}`
  for (const name of Object.keys(SECRETS)) {
    await app.svc(argv`config set ${name} --secret --value-env ${name} ${remote}`, SECRETS)
  }
  const mounted = await app.svc(
    argv`http mount main --target channel:production --secret-path --rate 10000 ${remote}`,
  )
  return { app, path: `${mounted.path}/${mounted.token}`, secrets: SECRETS }
}
