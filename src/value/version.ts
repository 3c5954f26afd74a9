/** The version of the product: what `version` prints. A test compares it with package.json. */
export const VERSION = '0.4.4'
