/** Names and values of variables and secrets (contract/management.md, Configuration). */

/**
 * Bytes of UTF-8.
 * @limit Configuration: a variable or a secret
 */
export const CONFIGURATION_VALUE_BYTES_MAX = 32 * 1024
/** 1 to 64 upper-case ASCII letters, digits and underscores, not beginning with an underscore. */
export const CONFIGURATION_NAME = /^[A-Z0-9][A-Z0-9_]{0,63}$/

export function isConfigurationName(text: string): boolean {
  return CONFIGURATION_NAME.test(text)
}
