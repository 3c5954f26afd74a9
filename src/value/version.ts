/** The version of the product, as `version` prints it. A test compares it with package.json. */
export const VERSION = '0.4.4'
