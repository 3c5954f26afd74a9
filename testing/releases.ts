/** Steps of tests on the Releases and Channels of a test Product. */
import { type PromoteInput, promote } from '../src/product/channels/promote.ts'
import { readStatus } from '../src/product/environments/status.ts'
import { retire } from '../src/product/releases/retire.ts'
import type { ReleaseId } from '../src/value/ids.ts'
import { REQUEST_ID, type TestProduct } from './products.ts'

/** Promotes a Release; by default to the Channel `production`, without an expectation. */
export function bindChannel(
  { product, actor }: TestProduct,
  releaseId: ReleaseId,
  binding: Partial<Pick<PromoteInput, 'channel' | 'expectedReleaseId'>> = {},
) {
  const { channel = 'production', expectedReleaseId = null } = binding
  const input = { channel, releaseId, expectedReleaseId, requestId: REQUEST_ID }
  return promote(product, actor, input)
}

export function retireRelease({ product, actor }: TestProduct, releaseId: ReleaseId): void {
  retire(product, actor, { releaseId, requestId: REQUEST_ID })
}

/** Returns the state in the status; undefined for an unknown Release. */
export function releaseState({ product }: TestProduct, releaseId: ReleaseId): string | undefined {
  return readStatus(product).releases.find((release) => release.releaseId === releaseId)?.state
}

/** Returns the code of the Fault that the action throws or rejects with; `none` if it succeeds. */
export async function faultCode(action: () => unknown): Promise<string> {
  try {
    await action()
  } catch (error) {
    return (error as { code: string }).code
  }
  return 'none'
}
