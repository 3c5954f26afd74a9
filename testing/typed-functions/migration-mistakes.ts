/** Migrations with the mistakes that the compiler must find, and no others. */
export const MIGRATION_MISTAKES = `
import { migration } from 'svc'

export default {
  shout: migration({
    table: 'messages',
    index: 'byChannel',
    batch: 100,
    each: async (ctx, message) => {
      const found = await ctx.db.get(message._id)
      return found === null ? null : { body: (message.body ?? '').toUpperCase() }
    },
  }),
}
export const requires = ['shout']
// @ts-expect-error another table
migration({ table: 'letters', each: () => null })
// @ts-expect-error another index
migration({ table: 'messages', index: 'byLetter', each: () => null })
// @ts-expect-error no code
migration({ table: 'messages' })
// @ts-expect-error a field of another type
migration({ table: 'messages', each: () => ({ body: 1 }) })
// @ts-expect-error no result
migration({ table: 'messages', each: () => {} })
// @ts-expect-error a field that may be absent
migration({ table: 'messages', each: (ctx, message) => ({ body: message.body.trim() }) })
// @ts-expect-error a write
migration({ table: 'messages', each: (ctx, message) => ctx.db.delete(message._id) })
`
