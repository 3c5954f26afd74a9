/** Releases of one Workspace. Some are incompatible with stored documents or with each other. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { type Application, application, mutation, operationId } from '../application.ts'
import { argv } from '../argv.ts'
import type { Compatibility } from './states.ts'

interface Schema {
  readonly tables: readonly string[]
  /** Validator of the text of a note. */
  readonly text: string
}

const WIDE = 'v.string()'
const NARROW = 'v.string({ maximumLength: 10 })'
const NUMBER = 'v.int64()'

/** The schema of each Release. */
const SCHEMAS: readonly Schema[] = [
  { tables: ['notes'], text: WIDE },
  { tables: ['notes'], text: WIDE },
  { tables: ['notes', 'tags'], text: WIDE },
  { tables: ['notes'], text: NARROW },
  { tables: ['notes'], text: NUMBER },
]

export interface ReleasedApplication {
  readonly app: Application
  /** The first one is bound to `channel:production`. */
  readonly releases: readonly string[]
  readonly compatibility: Compatibility
}

export async function releasedApplication(): Promise<ReleasedApplication> {
  const app = await application((workspace) => write(workspace, 0))
  const releases = [app.releaseId]
  try {
    for (const number of SCHEMAS.keys()) {
      if (number === 0) continue
      write(app.installation.workspace, number)
      const released = await app.svc(
        argv`release --no-typecheck --remote --root ${app.installation.productRoot}`,
      )
      releases.push(released.releaseId)
    }
    // Every Release was validated before this document is stored.
    const added = { function: 'releases.add', operationId: operationId() }
    expect((await mutation(app, added)).status).toBe(200)
  } catch (error) {
    await app.installation.dispose()
    throw error
  }
  return { app, releases, compatibility: compatibilityOf(releases) }
}

function write(workspace: string, number: number): void {
  const { tables, text } = SCHEMAS[number]!
  const defined = tables.map((name) => `${name}: table({ text: ${text} }),`).join('\n  ')
  const file = (name: string, content: string) => writeFileSync(join(workspace, name), content)
  file(
    'schema.ts',
    `import { defineSchema, table, v } from 'svc'

export default defineSchema({
  ${defined}
})
`,
  )
  for (const name of ['channels', 'messages']) file(`functions/${name}.ts`, '')
  file(
    'functions/releases.ts',
    `import { mutation, query, v } from 'svc'

export const add = mutation({
  clients: ['confidential'],
  returns: v.null(),
  handler: async (ctx) => {
    await ctx.db.insert('notes', { text: 'longer than ten characters' })
    return null
  },
})

export const number = query({
  clients: ['confidential'],
  returns: v.int64(),
  handler: () => ${number}n,
})
`,
  )
}

/** Returns the compatibility that follows from the tables above, independent of the server. */
function compatibilityOf(releases: readonly string[]): Compatibility {
  const of = (release: string) => SCHEMAS[releases.indexOf(release)]!
  const takes = (one: Schema, other: Schema) =>
    one.text === other.text || (one.text === WIDE && other.text === NARROW)
  return {
    fits: (release) => of(release).text === WIDE,
    coexist: (names) => names.every((one) => names.every((other) => takes(of(one), of(other)))),
  }
}
