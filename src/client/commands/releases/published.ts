/** Recognises a package that is published already. */
import type { ReleaseId } from '../../../value/ids.ts'
import type { Status } from '../../../wire/status.ts'

/** Returns the Release of the head where it is made of this package. */
export function publishedBefore(
  status: Status,
  head: ReleaseId | null,
  packageDigest: string,
): ReleaseId | null {
  const current = status.releases.find(
    ({ releaseId, state }) => releaseId === head && state !== 'retired',
  )
  return current?.packageDigest === packageDigest ? current.releaseId : null
}
