/** Codes under which an application sees failures of the Product's storage. */
import { Fault, isFault } from '../errors/fault.ts'

/** Rethrows an error; storage failures become UNAVAILABLE, RELEASE_RETIRED or INTERNAL. */
export function rethrowForApplication(error: unknown): never {
  if (isFault(error, 'PRODUCT_UNAVAILABLE')) {
    throw new Fault('UNAVAILABLE', { cause: error, detail: error.detail })
  }
  if (isFault(error, 'PRODUCT_RELEASE_RETIRED')) {
    throw new Fault('RELEASE_RETIRED', { cause: error, detail: error.detail })
  }
  if (isFault(error, 'PRODUCT_CORRUPT', 'PRODUCT_NOT_FOUND')) {
    throw new Fault('INTERNAL', { cause: error, detail: error.detail })
  }
  throw error
}
