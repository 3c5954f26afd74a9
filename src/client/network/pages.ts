/** Lists of the server that a command reads as a whole. */
import { Fault } from '../../errors/fault.ts'

interface Page<T> {
  readonly items: readonly T[]
  readonly next: string | null
}

/**
 * Reads every page. `read` gets `next` of the page before, null for the first one. Throws
 * CLIENT_RESPONSE_INVALID where a cursor comes twice: the pages would never end.
 */
export async function readPages<T>(read: (after: string | null) => Promise<Page<T>>): Promise<T[]> {
  const items: T[] = []
  const cursors = new Set<string>()
  for (let after: string | null = null; ; ) {
    const page: Page<T> = await read(after)
    items.push(...page.items)
    if (page.next === null) return items
    if (cursors.has(page.next)) {
      throw new Fault('CLIENT_RESPONSE_INVALID', { detail: 'The pages of the list do not end.' })
    }
    cursors.add(page.next)
    after = page.next
  }
}
