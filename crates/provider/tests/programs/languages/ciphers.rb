# Each cipher of AES and ChaCha20-Poly1305 that Ruby knows, given in pieces of several lengths, used again, and copied
# in the middle: a line for each.
require 'digest'
require 'openssl'

KEY = Digest::SHA512.digest('key')

def begin_with(name, how)
  cipher = OpenSSL::Cipher.new(name).public_send(how)
  cipher.key = (KEY * 2)[0, cipher.key_len]
  cipher.iv = KEY[0, cipher.iv_len] if cipher.iv_len > 0
  cipher
end

def through(cipher, data, step)
  out = +''
  (0...data.size).step(step) { |at| out << cipher.update(data[at, step]) }
  out << cipher.final
end

def told(name, data, step)
  with_tag = OpenSSL::Cipher.new(name).authenticated?
  header = ->(cipher) { cipher.auth_data = 'header' if with_tag }
  sealing = begin_with(name, :encrypt).tap(&header)
  sealed = through(sealing, data, step)
  tag = with_tag ? sealing.auth_tag : ''
  sealing.reset
  sealing.iv = KEY[0, sealing.iv_len] if sealing.iv_len > 0
  header.call(sealing)
  half = sealing.update(data)
  copy = sealing.dup
  again = [half + sealing.final, half + copy.final].map { |other| other == sealed }
  opening = begin_with(name, :decrypt)
  opening.auth_tag = tag if with_tag
  header.call(opening)
  "#{Digest::MD5.hexdigest(sealed + tag)} #{again} #{through(opening, sealed, step) == data}"
end

OpenSSL::Cipher.ciphers.map(&:upcase).uniq.sort.each do |name|
  next if name !~ /^(ID-)?(AES|CHACHA)/ || name =~ /HMAC|WRAP|SIV|CCM/

  [1, 15, 16, 17, 100, 65_537].product([1, 5, 16, 64, 1000]).each do |length, step|
    data = ("0123456789\n" * (length / 11 + 1))[0, length]
    puts "#{name} #{length} #{step} #{told(name, data, step)}"
  rescue OpenSSL::OpenSSLError => e
    puts "#{name} #{length} #{step} #{e.class} #{e.message}"
  end
end
