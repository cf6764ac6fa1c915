#!/usr/bin/env escript
%% Each cipher of AES and ChaCha20-Poly1305 that Erlang knows, at once and in pieces, with and without padding, with lengths of
%% nonces and tags that are right and wrong: a line for each.

main(_) ->
    Ciphers = [C || C <- lists:sort(crypto:supports(ciphers)), known(atom_to_list(C))],
    [told(Cipher, Length) || Cipher <- Ciphers, Length <- [0, 1, 15, 16, 17, 1000, 100000]].

known(Name) -> lists:prefix("aes", Name) orelse lists:prefix("chacha", Name).

bytes(Length) -> binary:part(binary:copy(<<"abcdefghijk">>, Length div 11 + 1), 0, Length).

key(Length) -> binary:part(binary:copy(crypto:hash(sha512, "key"), 2), 0, Length).

digest(Data) -> binary:encode_hex(crypto:hash(md5, Data)).

told(Cipher, Length) ->
    #{key_length := KeyLength, iv_length := IvLength, mode := Mode} = crypto:cipher_info(Cipher),
    Data = bytes(Length),
    case lists:member(Mode, [gcm_mode, ccm_mode]) orelse Cipher =:= chacha20_poly1305 of
        true ->
            [sealed(Cipher, key(KeyLength), Nonce, Tag, Data) || Nonce <- [7, 8, 12, 13, 16, 1, 60], Tag <- [16, 12, 4]];
        false ->
            [encrypted(Cipher, key(KeyLength), key(IvLength), Padding, Data) || Padding <- [none, pkcs_padding, zero]]
    end.

sealed(Cipher, Key, NonceLength, TagLength, Data) ->
    Open = fun(Text, Tag) ->
        crypto:crypto_one_time_aead(Cipher, Key, key(NonceLength), Text, <<"header">>, Tag, false)
    end,
    Said = case catch crypto:crypto_one_time_aead(Cipher, Key, key(NonceLength), Data, <<"header">>, TagLength, true) of
        {Text, <<First:8, Rest/binary>> = Tag} ->
            {digest([Text, Tag]), Open(Text, Tag) =:= Data, Open(Text, <<(First bxor 1):8, Rest/binary>>)};
        _ -> refused
    end,
    io:format("~p ~p ~p ~p ~p~n", [Cipher, byte_size(Data), NonceLength, TagLength, Said]).

encrypted(Cipher, Key, Iv, Padding, Data) ->
    Options = fun(Encrypt) -> [{encrypt, Encrypt}, {padding, Padding}] end,
    Said = case catch crypto:crypto_one_time(Cipher, Key, Iv, Data, Options(true)) of
        Text when is_binary(Text) ->
            State = crypto:crypto_init(Cipher, Key, Iv, Options(true)),
            Pieces = [crypto:crypto_update(State, Piece) || Piece <- pieces(Data)],
            Last = crypto:crypto_final(State),
            Opened = crypto:crypto_one_time(Cipher, Key, Iv, Text, Options(false)),
            {digest(Text), iolist_to_binary([Pieces, Last]) =:= Text, Opened =:= Data};
        _ -> refused
    end,
    io:format("~p ~p ~p ~p~n", [Cipher, byte_size(Data), Padding, Said]).

pieces(<<Piece:7/binary, Rest/binary>>) when Rest =/= <<>> -> [Piece | pieces(Rest)];
pieces(Data) -> [Data].
