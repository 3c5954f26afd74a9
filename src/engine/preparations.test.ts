import { describe, expect, test } from 'vitest'
import type { DocumentStore } from '../documents/store.ts'
import { realSystem } from '../system/system.ts'
import type { Committer } from './commits/committer.ts'
import { Preparations } from './preparations.ts'
import type { Release } from './release.ts'

const { ids } = realSystem()
const newRelease = () =>
  ({ releaseId: ids.make('rel'), tables: new Map(), functions: new Map() }) as unknown as Release

/** Counts how often indexes were asked for: twice for each preparation. */
function preparations() {
  const asked = { count: 0 }
  const ensureIndexes = async () => {
    asked.count += 1
    return []
  }
  const store = { ensureIndexes } as Partial<DocumentStore> as DocumentStore
  return { it: new Preparations(store, {} as Committer), asked }
}

describe('a Release', () => {
  test('is prepared once for all that ask at the same time, and found from then on', async () => {
    const { it, asked } = preparations()
    const release = newRelease()
    expect(it.find(release.releaseId)).toBeNull()
    const [one, other] = await Promise.all([it.prepare(release), it.prepare(release)])
    expect(other).toBe(one)
    expect(asked.count).toBe(2)
    expect(it.find(release.releaseId)).toBe(one)
    expect(await it.prepare(release)).toBe(one)
  })

  test('that is used stays prepared, whatever comes; one that is not is let go', async () => {
    const { it } = preparations()
    const [used, unused] = [newRelease(), newRelease()]
    const prepared = await it.prepare(used)
    await it.prepare(unused)
    for (let i = 0; i < 200; i++) {
      await it.prepare(newRelease())
      expect(it.find(used.releaseId)).toBe(prepared)
    }
    expect(it.find(unused.releaseId)).toBeNull()
    expect((await it.prepare(unused)).release).toBe(unused)
  })
})
