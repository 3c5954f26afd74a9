import { expect, test } from 'vitest'
import { realSystem } from '../../system/system.ts'
import type { LoadedRelease } from '../ports.ts'
import { ReleaseCache } from './release-cache.ts'

const { ids } = realSystem()

function newRelease(): LoadedRelease {
  return { releaseId: ids.make('rel') } as Partial<LoadedRelease> as LoadedRelease
}

/** A cache for two units of size, of Releases that are added and not loaded. */
function newCache(): ReleaseCache {
  const unused = {} as ConstructorParameters<typeof ReleaseCache>[0]
  return new ReleaseCache({ ...unused, bytesMax: 2 })
}

test('the Releases that are retained stay, and the memory of the others is free', () => {
  const cache = newCache()
  const [served, other, next] = [newRelease(), newRelease(), newRelease()]
  cache.add(served, 1)
  cache.add(other, 1)
  cache.retainOnly(new Set([served.releaseId]))
  expect([cache.peek(served.releaseId), cache.peek(other.releaseId)]).toEqual([served, null])
  cache.add(next, 1)
  expect([cache.peek(served.releaseId), cache.peek(next.releaseId)]).toEqual([served, next])
})
